//! Build script: lists the files that `make web` left in `console/`, for the binary. Nothing is built here: a server without
//! its console needs no Node.

use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Brotli of a file lies beside it under its name and this.
const BROTLI: &str = "br";

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("console");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    if folder.exists() {
        collect(&folder, &mut files)?;
    }
    files.sort();
    let mut code = String::from("fn assets() -> Vec<Asset> {\n    vec![\n");
    for file in files.iter().filter(|file| file.extension().is_none_or(|end| end != BROTLI)) {
        let path = file.strip_prefix(&folder)?.to_string_lossy().replace('\\', "/");
        let kind = media_type(file)
            .ok_or_else(|| format!("{}: no media type for it in build.rs", file.display()))?;
        let mut short = file.as_os_str().to_owned();
        short.push(format!(".{BROTLI}"));
        let short = Path::new(&short);
        let brotli = if short.exists() {
            format!("Some(include_bytes!({short:?}))")
        } else {
            "None".to_owned()
        };
        writeln!(
            code,
            "        Asset {{ path: {path:?}, media_type: {kind:?}, bytes: include_bytes!({file:?}), brotli: {brotli} }},"
        )?;
    }
    code.push_str("    ]\n}\n");
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("console.rs"), code)?;
    Ok(())
}

/// Every file but those whose names begin with a point.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')) {
            continue;
        }
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

fn media_type(file: &Path) -> Option<&'static str> {
    match file.extension()?.to_str()? {
        "html" => Some("text/html; charset=utf-8"),
        "js" => Some("text/javascript; charset=utf-8"),
        "css" => Some("text/css; charset=utf-8"),
        "svg" => Some("image/svg+xml"),
        "wasm" => Some("application/wasm"),
        "txt" => Some("text/plain; charset=utf-8"),
        _ => None,
    }
}
