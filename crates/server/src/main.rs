//! Program `ciphervec-server`: a command line enters, an exit code leaves. Server side.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(ciphervec_server::cli::run(std::env::args_os()))
}
