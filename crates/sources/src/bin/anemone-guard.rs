//! The guard of programs as an executable of its own. It is for a program whose `main` cannot begin with
//! `guard_or_continue` (`exec::guard_with`).

fn main() -> std::process::ExitCode {
    #[cfg(unix)]
    anemone_sources::exec::guard_or_continue();
    // Nobody else starts this.
    std::process::ExitCode::FAILURE
}
