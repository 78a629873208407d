use super::*;
use anabranch_run::{Serial, VirtualTime};
use anabranch_scenario::Document;

/// Two lines that add up.
pub(super) const TWO: &str = "name = 'two'\nduration = '10s'\n[[path]]\nname = 'a'\nrate = '20mbit'\ndelay = '10ms'\n\
                              [[path]]\nname = 'b'\nrate = '10mbit'\ndelay = '15ms'\n";

fn question(text: &str, uses: &[Use], schedulers: &[&str]) -> Question {
    let named = |name: &&str| anabranch_scenario::scheduler("test", name).unwrap();
    let scenario = Document::parse("x.toml", text).unwrap().scenario;
    let congestion = anabranch_scenario::congestion("test", "cubic").unwrap();
    let schedulers = schedulers.iter().map(named).collect();
    Question { scenario, uses: uses.to_vec(), schedulers, congestion, error: 0.1 }
}

fn asked(question: &Question) -> UseAdvice {
    question.answer(&VirtualTime::default(), &Serial, &()).unwrap().uses.remove(0)
}

#[test]
fn lines_that_add_up_are_used_together() {
    let advice = asked(&question(TWO, &[Use::Downloads], &["roundrobin", "minrtt", "redundant"]));
    assert!(advice.bond && advice.best_single == "a", "{advice:?}");
    assert_eq!(advice.scheduler, "minrtt");
    assert!((0.3..0.6).contains(&advice.gain), "{advice:?}");
    assert!(advice.gain_ci95.0 <= advice.gain && advice.gain <= advice.gain_ci95.1);
    // It sends everything twice.
    let (worst, gain) = advice.worst.clone().unwrap();
    assert!(worst == "redundant" && gain < 0.05, "{advice:?}");
    let share: f64 = advice.shares.iter().map(|(_, share)| share).sum();
    assert!((share - 1.0).abs() < 1e-6);
    let text = advice.sentences().join(" ");
    assert!(text.starts_with("use minrtt. Expect 4") && text.contains("more goodput than over a alone"), "{text}");
}

#[test]
fn a_line_that_only_hurts_is_left_alone() {
    let text = "duration = '10s'\n[[path]]\nname = 'good'\nrate = '40mbit'\ndelay = '5ms'\n\
                [[path]]\nname = 'bad'\nrate = '200kbit'\ndelay = '400ms'\nloss = '5%'\n\
                [connection]\nrecv_buffer = '128KiB'\n";
    let advice = asked(&question(text, &[Use::Downloads], &["minrtt", "roundrobin"]));
    assert!(!advice.bond && advice.best_single == "good", "{advice:?}");
    let text = advice.sentences().join(" ");
    assert!(text.starts_with("do not bond: use good alone."), "{text}");
}

#[test]
fn the_same_question_has_the_same_answer_and_no_more_runs_than_were_said() {
    let question = question(TWO, &[Use::Calls, Use::Requests], &["minrtt", "blest"]);
    let counted = Counted::default();
    let first = question.answer(&VirtualTime::default(), &Serial, &counted).unwrap();
    assert_eq!(first, question.answer(&VirtualTime::default(), &Serial, &()).unwrap());
    let (done, planned) = counted.last.into_inner().unwrap();
    assert!(done <= planned && done * 10 > planned * 9, "{done} {planned}");
    let [calls, requests] = &first.uses[..] else { panic!("two") };
    // No frame of a call is late over either line, so a second one adds nothing; an answer of 30 KB is shared.
    assert!(!calls.bond && calls.gain <= 0.01, "{calls:?}");
    assert!(requests.bond && requests.shares[1].1 > 0.2, "{requests:?}");
}

/// One line loses much, the other is silent for a while: over both a frame is seldom late.
#[test]
fn a_call_is_advised_by_its_late_frames() {
    let text = "duration = '10s'\n[[path]]\nname = 'lossy'\nrate = '5mbit'\ndelay = '60ms'\nloss = { down = '3%', up = '3%' }\n\
                [[path]]\nname = 'silent'\nrate = '5mbit'\ndelay = '20ms'\noutage = [['3s', '5s']]\n";
    let advice = asked(&question(text, &[Use::Calls], &["minrtt", "redundant"]));
    let (own, single) = advice.late_per_minute.unwrap();
    assert!(advice.bond && advice.scheduler == "redundant" && own < 0.5 * single, "{advice:?}");
    let text = advice.sentences().join(" ");
    assert!(text.starts_with("use redundant. Expect ") && text.contains(" late frames per minute, and "), "{text}");
    assert!(!text.contains("best possible"), "{text}");
}

/// The last progress.
#[derive(Default)]
struct Counted {
    last: std::sync::Mutex<(usize, usize)>,
}

impl Observer for Counted {
    fn progress(&self, done: usize, planned: usize) {
        *self.last.lock().unwrap() = (done, planned);
    }
}

/// The rule of the judge on some of its sets, with some schedulers: the advised choice is within 2 % of the best, and never more than
/// 2.5 % below the best path, judged on seeds that the advice did not see.
#[test]
fn the_advised_choice_has_little_regret() {
    let schedulers =
        ["minrtt", "blest", "roundrobin", "redundant"].map(|name| anabranch_scenario::scheduler("test", name).unwrap());
    let cubic = anabranch_scenario::congestion("test", "cubic").unwrap();
    let judged = |set: &judge::Judged| {
        set.regret((Use::Downloads, &schedulers, &cubic), (0.1, 4), (&VirtualTime::default(), &Serial)).unwrap()
    };
    let regrets: Vec<judge::Regret> = judge::sets(4, 0.1).iter().map(judged).collect();
    let near = regrets.iter().filter(|found| found.regret <= 0.02).count();
    assert!(near >= 3, "{regrets:?}");
    assert!(regrets.iter().all(|found| found.below_single <= 0.025), "{regrets:?}");
}
