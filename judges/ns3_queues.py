"""Queueing disciplines of ns-3 on given arrivals: the judge of crates/network/tests/ns3.rs.

    pip install ns3==3.44.post0
    python judges/ns3_queues.py crates/network/tests/data/ns3

Each file that it writes has a first line with the discipline and the link's rate, then one line per packet: arrival (ns), bytes,
flow, and the time at which its last bit left (ns), or the word `drop`.
"""

import random
import sys
from pathlib import Path

from ns import ns

ns.cppyy.cppdef(
    """
#include "ns3/core-module.h"
#include "ns3/network-module.h"
#include "ns3/traffic-control-module.h"
#include <cmath>
#include <string>
#include <vector>
using namespace ns3;

struct Arrival { int64_t at; uint32_t size; uint32_t flow; };

class Item : public QueueDiscItem {
public:
    Item(Ptr<Packet> packet, uint32_t flow) : QueueDiscItem(packet, Address(), 0), m_flow(flow) {}
    void AddHeader() override {}
    bool Mark() override { return false; }
    uint32_t Hash(uint32_t) const override { return m_flow; }
    uint32_t m_flow;
};

class Bench {
public:
    Bench(std::string kind, std::vector<std::pair<std::string, std::string>> attributes, double rate) : m_rate(rate) {
        // RFC 8289 §5.5: a queue of at most one full packet is no standing one; ns-3 compares with less than this.
        Config::SetDefault("ns3::CoDelQueueDisc::MinBytes", UintegerValue(1501));
        ObjectFactory factory;
        factory.SetTypeId("ns3::" + kind);
        for (auto& [name, value] : attributes) factory.Set(name, StringValue(value));
        m_queue = factory.Create<QueueDisc>();
        if (auto fair = DynamicCast<FqCoDelQueueDisc>(m_queue)) fair->SetQuantum(1514);
    }
    std::vector<int64_t> Run(std::vector<Arrival> arrivals) {
        m_left.assign(arrivals.size(), -1);
        m_queue->Initialize();
        for (size_t n = 0; n < arrivals.size(); ++n) {
            Simulator::Schedule(NanoSeconds(arrivals[n].at), &Bench::Arrive, this, n, arrivals[n].size, arrivals[n].flow);
        }
        Simulator::Stop(NanoSeconds(arrivals.back().at) + Seconds(30));
        Simulator::Run();
        Simulator::Destroy();
        return m_left;
    }
private:
    void Arrive(size_t n, uint32_t size, uint32_t flow) {
        Ptr<Packet> packet = Create<Packet>(size);
        m_numbers[packet->GetUid()] = n;
        m_queue->Enqueue(Create<Item>(packet, flow));
        if (!m_busy) Next();
    }
    void Next() {
        Ptr<QueueDiscItem> item = m_queue->Dequeue();
        m_busy = item != nullptr;
        if (!item) return;
        int64_t takes = std::ceil(item->GetPacket()->GetSize() * 8e9 / m_rate);
        m_left[m_numbers[item->GetPacket()->GetUid()]] = Simulator::Now().GetNanoSeconds() + takes;
        Simulator::Schedule(NanoSeconds(takes), &Bench::Next, this);
    }
    Ptr<QueueDisc> m_queue;
    double m_rate;
    bool m_busy = false;
    std::map<uint64_t, size_t> m_numbers;
    std::vector<int64_t> m_left;
};

std::vector<int64_t> Judge(std::string kind, std::vector<std::string> attributes, double rate, std::vector<int64_t> flat) {
    std::vector<std::pair<std::string, std::string>> pairs;
    for (size_t n = 0; n + 1 < attributes.size(); n += 2) pairs.push_back({attributes[n], attributes[n + 1]});
    std::vector<Arrival> arrivals;
    for (size_t n = 0; n + 2 < flat.size(); n += 3) arrivals.push_back({flat[n], uint32_t(flat[n + 1]), uint32_t(flat[n + 2])});
    Bench bench(kind, pairs, rate);
    return bench.Run(arrivals);
}
"""
)

RATE = 10_000_000


def arrivals(seed, flows, load, packets):
    """Bursts of several flows: on and off times exponential, `load` times the link's rate while most are on."""
    luck = random.Random(seed)
    mean_size = 1000
    found = []
    for flow in range(flows):
        now = luck.uniform(0, 0.2)
        gap = 8 * mean_size * flows / (load * RATE)
        while len([one for one in found if one[2] == flow]) < packets // flows:
            for _ in range(1 + int(luck.expovariate(1 / 40))):
                found.append((int(now * 1e9), luck.choice([100, 500, 1000, 1500, 1500]), flow))
                now += luck.expovariate(1 / gap)
            now += luck.expovariate(1 / (gap * 8))
    return sorted(found)


CASES = {
    "codel": ("CoDelQueueDisc", {"MaxSize": "1000p"}, dict(seed=1, flows=4, load=1.5, packets=3000)),
    "fq_codel": ("FqCoDelQueueDisc", {"MaxSize": "10240p"}, dict(seed=2, flows=6, load=1.5, packets=3000)),
    "fq_codel_full": ("FqCoDelQueueDisc", {"MaxSize": "100p"}, dict(seed=3, flows=6, load=2.5, packets=3000)),
    "pie": (
        "PieQueueDisc",
        {"MaxSize": "1000p", "UseDerandomization": "true", "Supdate": "15ms"},
        dict(seed=4, flows=4, load=1.5, packets=6000),
    ),
    "red": (
        "RedQueueDisc",
        {"MaxSize": "1000p", "MinTh": "5", "MaxTh": "15", "LinkBandwidth": "10Mbps", "MeanPktSize": "500", "UseHardDrop": "false"},
        dict(seed=5, flows=4, load=1.2, packets=6000),
    ),
    "cobalt": ("CobaltQueueDisc", {"MaxSize": "1000p"}, dict(seed=6, flows=4, load=1.5, packets=3000)),
}


def main(folder):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, (kind, attributes, drawn) in CASES.items():
        rows = arrivals(**drawn)
        flat = ns.cppyy.gbl.std.vector["int64_t"]([value for row in rows for value in row])
        pairs = ns.cppyy.gbl.std.vector["std::string"]([word for pair in attributes.items() for word in pair])
        left = list(ns.cppyy.gbl.Judge(kind, pairs, RATE, flat))
        lines = [f"{name} {RATE}"]
        lines += [f"{at},{size},{flow},{'drop' if out < 0 else out}" for (at, size, flow), out in zip(rows, left)]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
        print(name, len(rows), "packets,", sum(out < 0 for out in left), "dropped")


if __name__ == "__main__":
    main(sys.argv[1])
