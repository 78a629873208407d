//! Fixed cases of every class: the first seeds, and those that once showed a defect. To play one alone:
//! `cargo run --profile checked -p anabranch-adversary -- CLASS --shrink SEED`.

use anabranch_adversary::{Case, Class, Failure, Kind, newcomers, run, shrink};

/// Seeds from 0 on that are played of a class.
fn first(class: Class) -> u64 {
    if is_long(class) { 1 } else { 40 }
}

/// Each case has half a million packets.
fn is_long(class: Class) -> bool {
    class == Class::Wide
}

fn short() -> impl Iterator<Item = Class> {
    Class::ALL.into_iter().filter(|class| !is_long(*class))
}

/// Seeds that each showed a defect, now repaired.
const FOUND: [(Class, &[u64]); 20] = [
    (
        Class::Benign,
        &[
            57, 348, 587, 669, 1104, 1791, 2011, 2291, 2649, 3008, 3792, 4373, 4966, 6183, 32853, 1009401, 1011880,
            1021620, 6171517, 10468222, 10575107, 10661980, 10969133,
        ],
    ),
    (Class::Plain, &[131, 708, 797, 1349, 3075, 3870, 4316, 31796, 46206, 10745205]),
    (Class::Segments, &[75, 101, 108, 130, 167, 185, 189, 192, 218, 328, 1233, 1662, 3107, 6023280]),
    (
        Class::Nat,
        &[
            148, 564, 996, 1850, 2263, 2287, 2820, 3499, 3900, 4703, 5512, 25353, 31149, 46135, 123730, 1020066,
            1021446, 1025997, 6075226, 6170071, 6174890, 10085312, 10175956, 10239347, 10264254, 10297986, 10357961,
            10371758, 10438789, 10607954, 10681528, 10791349, 10844470, 10868332, 20011616, 20019070, 40016911,
            60024046, 80098467,
        ],
    ),
    (
        Class::Options,
        &[
            22, 123, 235, 244, 245, 271, 274, 386, 493, 496, 525, 602, 1024, 2333, 2406, 3315, 3510, 3678, 3929, 3968,
            4223, 4647, 4668, 4814, 5163, 6904, 20158, 30559, 31334, 1012911, 10133098, 10154026, 10176259, 10544776,
            10694390, 10892172, 80135165,
        ],
    ),
    (
        Class::Payload,
        &[
            65, 80, 98, 149, 162, 172, 211, 252, 374, 510, 593, 816, 856, 875, 892, 1091, 2073, 2245, 2299, 2484, 2499,
            3366, 3417, 5926, 20552, 26835,
        ],
    ),
    (Class::PayloadOnePath, &[76, 459, 622, 673, 828, 943, 1318, 1363, 1404, 2366, 2554, 2786, 3095, 3178, 3877]),
    (Class::Blackout, &[144, 255, 282, 399, 923, 3247, 5032, 5563, 21851, 30565, 1000218, 10466366]),
    (Class::App, &[238, 320, 433, 675, 2669, 2681, 2887, 4054, 4852, 4928, 4978, 5959]),
    (
        Class::Guess,
        &[
            52, 69, 99, 102, 125, 227, 267, 279, 290, 300, 405, 510, 512, 562, 1480, 1660, 2993, 3233, 3736, 5081,
            3013230, 10135231, 10158861, 10175002, 10752689,
        ],
    ),
    (
        Class::Forge,
        &[
            89, 535, 727, 981, 1026, 1290, 1303, 1572, 1574, 1817, 2067, 2432, 3145, 3223, 3477, 4117, 5302, 5546,
            41319, 132631, 1020499, 6071597, 6072426, 10134833, 10138334, 10218747, 10371878, 10384533, 10423975,
            10457943, 10483306, 10567021, 10729769, 10914297,
        ],
    ),
    (Class::Floods, &[15, 35, 95, 294, 737, 1225, 2151, 2360, 2598]),
    (Class::Race, &[10088269]),
    (Class::Strip, &[]),
    (Class::Tiny, &[10041412, 10086140]),
    (Class::Resets, &[10276878, 10628865, 10805117, 10900024]),
    (Class::Wide, &[]),
    (Class::Bleach, &[]),
    (
        Class::Mtu,
        &[
            10248802, 10380063, 10532211, 10701316, 10782643, 10810062, 90029750, 90162012, 90196123, 90202608,
            90229317, 90345952, 90358932,
        ],
    ),
    (
        Class::Clock,
        &[
            10036460, 10057847, 10061061, 10133830, 10150076, 10214753, 10382520, 10387461, 10395874, 10407320,
            10464664, 10616781, 10669408, 10744913, 10779029, 10823759, 10949288, 10991520, 30000327,
        ],
    ),
];

/// Defects that are not repaired. An entry that breaks nothing, or another property, fails the test as well.
const KNOWN: &[(Class, u64, Kind)] = &[
    (Class::Benign, 10969133, Kind::Late),
    (Class::Nat, 10607954, Kind::Error),
    (Class::Nat, 10681528, Kind::Late),
    (Class::Resets, 10628865, Kind::Late),
];

fn seeds(class: Class) -> impl Iterator<Item = u64> {
    let found = FOUND.iter().filter(move |(c, _)| *c == class).flat_map(|(_, seeds)| seeds.iter().copied());
    (0..first(class)).chain(found.filter(move |seed| *seed >= first(class)))
}

#[test]
fn every_class_keeps_its_promises_but_for_what_is_known() {
    let mut broken = Vec::new();
    for class in Class::ALL {
        for seed in seeds(class) {
            if let Err(failure) = run(&Case::from_seed(class, seed)) {
                broken.push((class, seed, failure));
            }
        }
    }
    let mut known = KNOWN.to_vec();
    known.sort();
    let kinds: Vec<_> = broken.iter().map(|(class, seed, failure)| (*class, *seed, failure.kind)).collect();
    let text = |failures: &[(Class, u64, Failure)]| {
        let lines = failures.iter().map(|(class, seed, failure)| format!("{class} {seed}: {failure}"));
        lines.collect::<Vec<_>>().join("\n")
    };
    assert_eq!(kinds, known, "\n{}", text(&broken));
}

/// Plug-ins among which no seed chooses.
#[test]
fn newcomers_keep_the_promises_of_every_class() {
    let (schedulers, congestion) = newcomers();
    let play = |class, seed, scheduler, congestion| {
        let case = Case::from_seed(class, seed).with(scheduler, congestion);
        run(&case).map_err(|failure| format!("{class} {seed}, {scheduler:?}, {congestion:?}: {failure}"))
    };
    for class in short() {
        for seed in 0..first(class) {
            for name in schedulers {
                play(class, seed, Some(name.as_str()), None).unwrap();
            }
            for name in &congestion {
                play(class, seed, None, Some(name)).unwrap();
            }
        }
    }
}

#[test]
fn a_case_is_a_function_of_its_seed() {
    for class in short() {
        let play = |seed| run(&Case::from_seed(class, seed));
        assert_eq!(play(1), play(1));
        assert!((2..20).any(|seed| play(seed) != play(1)));
    }
}

#[test]
fn any_bytes_are_a_case() {
    // Arbitrary bytes of any length.
    let bytes: Vec<u8> = (0u32..600).map(|n| (n.wrapping_mul(0x9e37_79b9) >> 13) as u8).collect();
    for class in 0..Class::ALL.len() as u8 {
        for from in (0..bytes.len()).step_by(97) {
            let input = [&[class], &bytes[from..]].concat();
            let case = Case::from_bytes(&input);
            assert_eq!(case.class, Class::ALL[usize::from(class)]);
            if is_long(case.class) {
                continue;
            }
            if let Err(failure) = run(&case) {
                panic!("{} from {from}: {failure}", case.class);
            }
        }
    }
    let empty = run(&Case::from_bytes(&[])).expect("two idle hosts");
    assert_eq!(empty.fell_back, [false, false]);
}

/// The first case of `Class::Payload` that breaks a property with checksums off at both ends.
fn unprotected() -> (Case, Failure) {
    let case = |seed| {
        let mut case = Case::from_seed(Class::Payload, seed);
        case.parties.iter_mut().for_each(|party| party.settings.checksum = false);
        case
    };
    let broken = (0..100).map(case).find_map(|case| run(&case).err().map(|failure| (case, failure)));
    broken.expect("changed payload is delivered where nothing protects it")
}

#[test]
fn a_changed_byte_is_seen() {
    assert_eq!(unprotected().1.kind, Kind::Corrupt);
}

#[test]
fn a_small_case_breaks_the_same() {
    let (case, failure) = unprotected();
    let small = shrink(&case);
    assert_eq!(run(&small).map_err(|f| f.kind), Err(failure.kind));
    assert_eq!(small.deeds.as_ref().map(Vec::len), Some(1), "one changed byte is enough");
    assert_eq!(small.paths.len(), 1);
}
