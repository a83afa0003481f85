//! Notes on a server that can read none of them: `cargo run --example notes -p ciphervec-client -- http://127.0.0.1:8707`.
//!
//! `ciphervec serve --data notes --insecure` serves on this machine without tokens.

use std::error::Error;
use std::sync::Arc;

use ciphervec_client::{
    Choices, Client, ClientOptions, Connection, Parts, QueryRequest, Records, Selection, block_on,
};
use ciphervec_owner::Keys;

fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "http://127.0.0.1:8707".to_owned());
    // For more than a try: keys.save(path, Some(passphrase)), and Connection::new(folder), which remembers what the server showed.
    let keys = Arc::new(Keys::generate()?);
    let host = Connection::in_memory();
    let client = Client::new(ClientOptions { keys: Some(keys.into()), ..ClientOptions::new(url) })?;

    let name = format!("notes-{}", std::process::id());
    let choices = Choices { filterable: vec!["lang".to_owned()], ..Choices::new(&name, 4) };
    let notes = block_on(client.create_collection(&host, &choices))?;
    let texts = ["a cat sleeps", "ein Hund bellt", "a dog barks"];
    let rows = Records {
        ids: vec!["cat".into(), "hund".into(), "dog".into()],
        embeddings: vec![1.0, 0.1, 0.0, 0.0, 0.0, 0.9, 0.4, 0.0, 0.1, 1.0, 0.3, 0.0],
        metadatas: ["en", "de", "en"].map(|lang| Some(format!("{{\"lang\":\"{lang}\"}}"))).to_vec(),
        documents: texts.map(|text| Some(text.to_owned())).to_vec(),
        ..Records::default()
    };
    block_on(notes.add(&host, rows))?;

    let request = QueryRequest {
        embeddings: vec![0.0, 1.0, 0.3, 0.0],
        n_results: Some(2),
        among: Selection { filter: Some("{\"lang\":\"en\"}".to_owned()), ..Selection::default() },
        parts: Parts { records: true, ..Parts::default() },
        ..QueryRequest::default()
    };
    for hit in &block_on(notes.query(&host, request))?.hits[0] {
        println!("{:.3}  {}", hit.score, hit.row.document.as_deref().unwrap_or_default());
    }
    block_on(client.delete_collection(&host, &name))?;
    Ok(())
}
