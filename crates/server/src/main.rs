//! The program `ciphervec-server`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(ciphervec_server::cli::run(std::env::args_os()))
}
