//! `tests/data/carrier/vectors.txt`: from the inputs there, both ends send the datagrams there.

mod common;

use anabranch_carrier::files::Client as Admitted;
use anabranch_carrier::{Arrival, Client, ClientSettings, Limits, PeerId, Secret, Server, ServerSettings, StaticKey};
use anabranch_units::{Duration, Instant, PathId};
use rand_core::{TryCryptoRng, TryRng};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;

const TEXT: &str = include_str!("../../../tests/data/carrier/vectors.txt");

/// Random numbers that are known beforehand.
struct Script(std::vec::IntoIter<u8>);

impl TryRng for Script {
    type Error = Infallible;
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut bytes = [0; 4];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0; 8];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
    fn try_fill_bytes(&mut self, dst: &mut [u8]) -> Result<(), Infallible> {
        dst.iter_mut().for_each(|byte| *byte = self.0.next().expect("the script is long enough"));
        Ok(())
    }
}

impl TryCryptoRng for Script {}

struct Vectors(BTreeMap<String, Vec<u8>>);

impl Vectors {
    fn read() -> Self {
        let lines = TEXT.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let entry = |line: &str| {
            let (name, hex) = line.split_once(" = ").expect("`name = hex`");
            let byte = |n: usize| u8::from_str_radix(&hex[n..n + 2], 16).expect("hexadecimal digits");
            (name.to_owned(), (0..hex.len()).step_by(2).map(byte).collect())
        };
        Self(lines.map(entry).collect())
    }

    fn get(&self, name: &str) -> &[u8] {
        self.0.get(name).unwrap_or_else(|| panic!("there is no `{name}`"))
    }

    fn key(&self, name: &str) -> Secret {
        Secret::new(self.get(name).try_into().expect("32 bytes"))
    }

    fn script(&self, names: &[&str]) -> Box<Script> {
        let bytes: Vec<u8> = names.iter().flat_map(|name| self.get(name).to_vec()).collect();
        Box::new(Script(bytes.into_iter()))
    }

    fn holds(&self, name: &str, bytes: &[u8]) {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(self.0.get(name).is_some_and(|expected| expected == bytes), "{name} = {hex}");
    }

    fn client(&self) -> Client {
        let draws = ["session", "client_ephemeral", "client_index", "jitter", "challenge_token_0", "challenge_token_1"];
        self.client_with(&draws)
    }

    fn client_with(&self, draws: &[&str]) -> Client {
        let settings = ClientSettings {
            key: StaticKey::new(self.key("client_private")),
            preshared: self.key("preshared"),
            server: StaticKey::new(self.key("server_private")).public(),
            epoch: u128::from(u64::from_be_bytes(self.get("unix_nanos").try_into().unwrap())),
        };
        let mut client = Client::new(settings, self.script(draws));
        assert!(client.add_path(Instant::ZERO, PathId(0)) && client.add_path(Instant::ZERO, PathId(1)));
        client
    }

    fn server(&self, handshakes: u32, draws: &[&str]) -> Server {
        let public = StaticKey::new(self.key("client_private")).public();
        let admitted = Admitted { public, preshared: self.key("preshared"), name: "client".into() };
        let key = StaticKey::new(self.key("server_private"));
        let limits = Limits { handshakes, ..Limits::default() };
        Server::new(ServerSettings { key, clients: vec![admitted], limits, keep: Duration::ZERO }, self.script(draws))
    }
}

fn from() -> SocketAddr {
    "192.0.2.1:4000".parse().unwrap()
}

#[test]
fn a_session() {
    let vectors = Vectors::read();
    let mut client = vectors.client();
    let mut server = vectors
        .server(1, &["server_ephemeral", "server_index", "incarnation", "route_token_0", "route_token_1", "unused"]);
    let (now, mut packet) = (Instant::ZERO, Vec::new());
    vectors.holds("client_public", &StaticKey::new(vectors.key("client_private")).public().0);
    vectors.holds("server_public", &StaticKey::new(vectors.key("server_private")).public().0);

    client.handle_timeout(now);
    let (_, initiation) = client.poll_transmit().unwrap();
    vectors.holds("initiation", &initiation);
    server.handle_datagram(now, from(), &initiation, &mut packet);
    let (_, response) = server.poll_transmit().unwrap();
    vectors.holds("response", &response);

    client.handle_datagram(now, &response, &mut packet);
    let [first, second] = [0, 1].map(|_| client.poll_transmit().unwrap().1);
    vectors.holds("client_challenge_path_0", &first);
    vectors.holds("client_challenge_path_1", &second);
    server.handle_datagram(now, from(), &first, &mut packet);
    let [challenge, answer, incarnation] = [0, 1, 2].map(|_| server.poll_transmit().unwrap().1);
    vectors.holds("server_challenge_path_0", &challenge);
    vectors.holds("server_answer_path_0", &answer);
    vectors.holds("server_incarnation_path_0", &incarnation);
    client.handle_datagram(now, &challenge, &mut packet);
    vectors.holds("client_answer_path_0", &client.poll_transmit().unwrap().1);

    let addresses = client.addresses();
    vectors.holds("client_address_path_1", &addresses.client(PathId(1)).octets());
    vectors.holds("server_address", &addresses.server().octets());
    let mut datagram = Vec::new();
    let inner = common::packet(addresses.client(PathId(1)), addresses.server(), 24, 1);
    vectors.holds("packet_path_1", &inner);
    client.send(now, PathId(1), &inner, &mut datagram).unwrap();
    vectors.holds("data_path_1", &datagram);
    let arrival = server.handle_datagram(now, from(), &datagram, &mut packet);
    assert_eq!((arrival, packet), (Some(Arrival { peer: PeerId(0), path: PathId(1) }), inner));
}

#[test]
fn a_cookie() {
    let vectors = Vectors::read();
    let draws = ["session", "client_ephemeral", "client_index", "jitter", "second_ephemeral", "second_index", "jitter"];
    let mut client = vectors.client_with(&draws);
    let mut server = vectors.server(0, &["cookie_secret", "cookie_nonce", "server_ephemeral", "server_index"]);
    let (now, mut packet) = (Instant::ZERO, Vec::new());
    client.handle_timeout(now);
    let (_, initiation) = client.poll_transmit().unwrap();
    server.handle_datagram(now, from(), &initiation, &mut packet);
    let (_, reply) = server.poll_transmit().unwrap();
    vectors.holds("cookie_reply", &reply);
    client.handle_datagram(now, &reply, &mut packet);
    client.handle_timeout(now);
    let (_, marked) = client.poll_transmit().unwrap();
    vectors.holds("initiation_with_mac2", &marked);
    server.handle_datagram(now, from(), &marked, &mut packet);
    assert_eq!(server.poll_transmit().unwrap().1.len(), 92, "it is answered");
}
