//! How long a fuzz test runs, from which seeds, and what happens if it hangs.

use std::fmt::Debug;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

/// How long a test runs where AGENTRT_FUZZ_SECONDS is not set.
const MOMENT: Duration = Duration::from_millis(500);
/// Cases made from one seed: few, so that repeating a failure takes little time.
const CASES_PER_SEED: u32 = 8;
/// Most milliseconds spent on finding a smaller input that fails.
const SHRINKING_MILLISECONDS: u32 = 30_000;
/// An operation that takes longer hangs.
const HANG: Duration = Duration::from_secs(20);

/// The operation that is under way.
static CURRENT: Mutex<Option<(Instant, String)>> = Mutex::new(None);

/// Keeps the tests of this process apart: they count what the process holds.
pub fn alone() -> MutexGuard<'static, ()> {
    static RUNNING: Mutex<()> = Mutex::new(());
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives inputs to `test`, which panics where a property does not hold, until the time is over.
pub fn fuzz<S: Strategy>(inputs: &S, test: impl Fn(S::Value))
where
    S::Value: Debug,
{
    static WATCH: Once = Once::new();
    WATCH.call_once(|| drop(std::thread::spawn(watch)));
    let deadline = Instant::now() + time();
    let given = std::env::var("AGENTRT_FUZZ_SEED")
        .ok()
        .map(|text| seed_of(&text));
    loop {
        let seed = given.unwrap_or_else(random_seed);
        let config = Config {
            cases: CASES_PER_SEED,
            failure_persistence: None,
            max_shrink_time: SHRINKING_MILLISECONDS,
            ..Config::default()
        };
        let generator = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        let outcome = TestRunner::new_with_rng(config, generator).run(inputs, |input| {
            if Instant::now() < deadline || given.is_some() {
                test(input);
            }
            Ok::<(), TestCaseError>(())
        });
        if let Err(failure) = outcome {
            panic!(
                "repeat with AGENTRT_FUZZ_SEED={}\n{failure}",
                text_of(&seed)
            );
        }
        if Instant::now() >= deadline || given.is_some() {
            return;
        }
    }
}

/// Does `operation`; ends the process, naming the operation, if it hangs.
pub fn watched<T>(name: impl FnOnce() -> String, operation: impl FnOnce() -> T) -> T {
    *current() = Some((Instant::now(), name()));
    let result = operation();
    *current() = None;
    result
}

fn current() -> MutexGuard<'static, Option<(Instant, String)>> {
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner)
}

fn watch() {
    loop {
        std::thread::sleep(Duration::from_secs(1));
        if let Some((start, name)) = &*current()
            && start.elapsed() > HANG
        {
            // Not by a macro: the test harness would keep what those print.
            let _ = writeln!(std::io::stderr(), "hangs: {name}");
            std::process::abort();
        }
    }
}

fn time() -> Duration {
    let seconds = std::env::var("AGENTRT_FUZZ_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok());
    seconds.map_or(MOMENT, Duration::from_secs)
}

fn random_seed() -> [u8; 32] {
    let mut seed = [0; 32];
    rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty()).unwrap();
    seed
}

fn text_of(seed: &[u8; 32]) -> String {
    seed.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn seed_of(text: &str) -> [u8; 32] {
    let mut seed = [0; 32];
    for (index, byte) in seed.iter_mut().enumerate() {
        let digits = text
            .get(2 * index..2 * index + 2)
            .expect("64 hexadecimal digits");
        *byte = u8::from_str_radix(digits, 16).expect("hexadecimal digits");
    }
    seed
}
