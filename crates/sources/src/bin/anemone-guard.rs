//! The guard of programs alone, for a program that cannot begin with `guard_or_continue` itself (`exec::guard_with`).

fn main() -> std::process::ExitCode {
    #[cfg(unix)]
    anemone_sources::exec::guard_or_continue();
    // Nobody else starts this.
    std::process::ExitCode::FAILURE
}
