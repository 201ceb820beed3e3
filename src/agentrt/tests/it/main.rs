//! Integration tests: real programs, run natively and by `agentrt run`, compared byte for byte.
//!
//! ```text
//! cargo test -p agentrt --test it            all of them
//! cargo test -p agentrt --test it memory::   those whose name contains this
//! ```
//!
//! Each test runs the command line of agentrt, never its library. Where there is no `/dev/kvm` the
//! tests that need it are reported as ignored. `AGENTRT` names another binary to test; the tests
//! in [`hardware`] need nothing but that, Python, busybox and a few tools, and are what the emulated
//! machine of `tools/svm` runs.

mod bad_options;
mod busybox;
mod escapes;
mod file_calls;
mod files;
mod hardware;
mod harness;
mod hostile;
mod memory;
mod options;
mod python;
mod run;
mod signals;
mod stats;
mod strace;
mod streams;
mod tools;
mod vdso;

use std::process::ExitCode;

fn main() -> ExitCode {
    harness::take_default_signals();
    let arguments = libtest_mimic::Arguments::from_args();
    let trials = [
        run::tests(),
        streams::tests(),
        signals::tests(),
        options::tests(),
        bad_options::tests(),
        stats::tests(),
        strace::tests(),
        python::tests(),
        busybox::tests(),
        tools::tests(),
        memory::tests(),
        file_calls::tests(),
        files::tests(),
        escapes::tests(),
        hostile::tests(),
        vdso::tests(),
        hardware::tests(),
    ];
    libtest_mimic::run(&arguments, trials.into_iter().flatten().collect()).exit_code()
}
