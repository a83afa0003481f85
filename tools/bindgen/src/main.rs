//! Makes JavaScript and TypeScript declarations for a wasm module that cargo built, and strips its
//! names and notes.
//!
//! `bindgen MODULE.wasm FOLDER NAME`

use std::path::PathBuf;
use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [module, folder, name] = &arguments[..] else {
        return Err("usage: bindgen MODULE.wasm FOLDER NAME".into());
    };
    let mut bindgen = Bindgen::new();
    bindgen.input_path(module).web(true)?.typescript(true).out_name(name);
    bindgen.remove_name_section(true).remove_producers_section(true);
    bindgen.generate(PathBuf::from(folder))?;
    Ok(())
}
