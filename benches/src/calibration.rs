//! A loop like that of every event loop, so that figures from different machines can be compared: a 4-ary heap of 1000
//! events of 32 bytes, pop the first, push it back later.

use cpu_time::ProcessTime;

const EVENTS: usize = 1000;
const OPERATIONS: u32 = 20_000_000;

#[derive(Clone, Copy)]
struct Event {
    at: u64,
    rest: [u64; 3],
}

/// Pops and pushes per CPU second; one operation is one pop with one push.
pub fn operations_per_second() -> f64 {
    let mut luck = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = || {
        luck ^= luck << 13;
        luck ^= luck >> 7;
        luck ^= luck << 17;
        luck
    };
    let mut heap: Vec<Event> = (0..EVENTS).map(|n| Event { at: draw() % 1000, rest: [n as u64; 3] }).collect();
    heap.sort_unstable_by_key(|event| event.at);
    let begun = ProcessTime::now();
    for _ in 0..OPERATIONS {
        let mut event = pop(&mut heap);
        event.at += 1 + draw() % 1000;
        event.rest[0] = event.rest[0].wrapping_add(event.at);
        push(&mut heap, event);
    }
    let seconds = begun.elapsed().as_secs_f64();
    std::hint::black_box(&heap);
    f64::from(OPERATIONS) / seconds
}

fn pop(heap: &mut Vec<Event>) -> Event {
    let first = heap[0];
    let event = heap.pop().expect("never empty");
    let mut hole = 0;
    loop {
        let from = hole * 4 + 1;
        let to = (from + 4).min(heap.len());
        let Some(least) = (from..to).min_by_key(|i| heap[*i].at) else { break };
        if heap[least].at >= event.at {
            break;
        }
        heap[hole] = heap[least];
        hole = least;
    }
    heap[hole] = event;
    first
}

fn push(heap: &mut Vec<Event>, event: Event) {
    let mut hole = heap.len();
    heap.push(event);
    while hole > 0 {
        let parent = (hole - 1) / 4;
        if heap[parent].at <= event.at {
            break;
        }
        heap[hole] = heap[parent];
        hole = parent;
    }
    heap[hole] = event;
}
