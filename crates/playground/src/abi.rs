//! The functions of the WebAssembly module. A caller writes JSON into the memory that [`input`] gives, calls, and reads the answer
//! at [`output`]: JSON, or for [`advance`] numbers. Every call that may fail returns 0 for success, 1 for an answer of mistakes.

use crate::own::Ask;
use crate::{Live, Mistake, Request, Slice, catalogue, study};
use anabranch_run::fields::Fact;
use serde::Serialize;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::sync::Once;

/// The numbers of a slice before its rows: over (1, or 0), time in seconds, and for packets, notes and decisions the count of
/// numbers and the numbers per row.
const SLICE: usize = 8;

#[derive(Default)]
struct State {
    input: Vec<u8>,
    output: Vec<u8>,
    live: Option<Live>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

mod page {
    #[link(wasm_import_module = "page")]
    unsafe extern "C" {
        pub safe fn progress(done: u32, planned: u32);
        pub safe fn choose(question: *const f64, count: u32, command: *mut f64) -> i32;
    }
}

fn progress(done: usize, planned: usize) {
    page::progress(done as u32, planned as u32);
}

const OWN: Ask = |question, command| page::choose(question.as_ptr(), question.len() as u32, command.as_mut_ptr());

/// Leaves a panic's message as the answer: the trap that follows says nothing.
fn keep(panic: &str) {
    let message = text(&json!({ "panic": panic }));
    let _ = STATE.try_with(|state| state.try_borrow_mut().map(|mut state| state.output = message));
}

/// The digest of the sources that the module is made from, as 32 digits: the command searches the module for them.
#[unsafe(no_mangle)]
pub extern "C" fn sources() -> *const u8 {
    env!("ANABRANCH_MODULE").as_ptr()
}

/// Memory for `len` bytes of a request.
#[unsafe(no_mangle)]
pub extern "C" fn input(len: usize) -> *mut u8 {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| std::panic::set_hook(Box::new(|panic| keep(&panic.to_string()))));
    STATE.with_borrow_mut(|state| {
        state.input = vec![0; len];
        state.input.as_mut_ptr()
    })
}

/// Where the answer begins.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    STATE.with_borrow(|state| state.output.as_ptr())
}

/// How many bytes it has.
#[unsafe(no_mangle)]
pub extern "C" fn output_len() -> usize {
    STATE.with_borrow(|state| state.output.len())
}

fn answer(value: Result<Vec<u8>, Vec<Mistake>>) -> u32 {
    let (output, code) = match value {
        Ok(output) => (output, 0),
        Err(mistakes) => (text(&json!({ "mistakes": mistakes })), 1),
    };
    STATE.with_borrow_mut(|state| state.output = output);
    code
}

fn text(value: &impl Serialize) -> Vec<u8> {
    // Keys are strings: this cannot fail.
    serde_json::to_vec(value).unwrap_or_default()
}

fn request() -> Result<Request, Vec<Mistake>> {
    let input = STATE.with_borrow_mut(|state| core::mem::take(&mut state.input));
    serde_json::from_slice(&input).map_err(|error| vec![Mistake::plain(error.to_string())])
}

/// Presets and plug-ins.
#[unsafe(no_mangle)]
pub extern "C" fn offer() -> u32 {
    answer(Ok(text(&catalogue())))
}

/// The names of the numbers that a reader's scheduler gets.
#[unsafe(no_mangle)]
pub extern "C" fn fields() -> u32 {
    answer(Ok(text(&crate::fields())))
}

/// The scenario of a request, as the page draws it.
#[unsafe(no_mangle)]
pub extern "C" fn describe() -> u32 {
    answer(request().and_then(|request| Ok(text(&request.describe()?))))
}

/// Begins its first run.
#[unsafe(no_mangle)]
pub extern "C" fn begin() -> u32 {
    let live = request().and_then(|request| Live::begin(&request, Some(OWN)));
    answer(live.map(|live| {
        STATE.with_borrow_mut(|state| state.live = Some(live));
        Vec::new()
    }))
}

/// Advances to a time in seconds; the answer is a slice, in numbers of eight bytes.
#[unsafe(no_mangle)]
pub extern "C" fn advance(to_s: f64) -> u32 {
    let Some(mut live) = STATE.with_borrow_mut(|state| state.live.take()) else {
        return answer(Err(vec![Mistake::plain("no run has begun")]));
    };
    let slice = live.advance(to_s);
    STATE.with_borrow_mut(|state| state.live = Some(live));
    answer(slice.map(|slice| numbers(&slice)))
}

fn numbers(slice: &Slice) -> Vec<u8> {
    let parts = [&slice.packets, &slice.notes, &slice.decisions];
    let mut head = vec![slice.over.number(), slice.now_s];
    head.extend(parts.iter().zip(slice.widths).flat_map(|(part, width)| [part.len() as f64, width as f64]));
    debug_assert_eq!(head.len(), SLICE);
    head.iter().chain(parts.into_iter().flatten()).flat_map(|number| number.to_le_bytes()).collect()
}

/// Ends the run; the answer is its summary.
#[unsafe(no_mangle)]
pub extern "C" fn finish() -> u32 {
    match STATE.with_borrow_mut(|state| state.live.take()) {
        Some(live) => answer(Ok(text(&live.finish()))),
        None => answer(Err(vec![Mistake::plain("no run has begun")])),
    }
}

/// Runs all schedulers with all seeds; the answer is `{ results, page }`.
#[unsafe(no_mangle)]
pub extern "C" fn compare() -> u32 {
    let done = request().and_then(|request| study(&request, Some(OWN), progress));
    answer(done.map(|done| {
        let results: Value = serde_json::from_str(&done.results.to_json()).unwrap_or_default();
        text(&json!({ "results": results, "page": done.page }))
    }))
}
