//! Adds a row to a collection that other clients made, and prints what is there: for a test in which clients take turns.
//!
//! `turns URL KEYS NAME ID`: the key file has no passphrase, the vector is the one of the latest row, turned by one place.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use ciphervec_client::{
    Client, ClientOptions, Connection, Parts, QueryRequest, Records, Selection, block_on,
};
use ciphervec_owner::Keys;

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let [url, keys, name, id] = given.as_slice() else {
        return Err("URL, KEYS, NAME and ID are expected".into());
    };
    let keys = Arc::new(Keys::load(Path::new(keys), None)?);
    let host = Connection::in_memory();
    let client = Client::new(ClientOptions { keys: Some(keys.into()), ..ClientOptions::new(url) })?;
    let docs = block_on(client.get_collection(&host, name, false, None))?;
    let parts = Parts { records: true, embeddings: true, ..Parts::default() };
    let there = block_on(docs.get(&host, &Selection::default(), parts, 0, None, None))?;
    let mut vector = there
        .rows
        .last()
        .and_then(|row| row.embedding.clone())
        .ok_or("the collection has no row")?;
    vector.rotate_right(1);
    let row = Records {
        ids: vec![id.as_str().into()],
        embeddings: vector.clone(),
        metadatas: vec![Some("{\"by\":\"rust\",\"n\":1.0}".to_owned())],
        documents: vec![Some(format!("row {id}"))],
        ..Records::default()
    };
    block_on(docs.add(&host, row))?;
    let request =
        QueryRequest { embeddings: vector, n_results: Some(1), parts, ..QueryRequest::default() };
    let found = block_on(docs.query(&host, request))?;
    let hit = found.hits.first().and_then(|hits| hits.first()).ok_or("nothing was found")?;
    println!("{} {}", block_on(docs.count(&host))?, hit.row.id);
    for row in there.rows {
        println!(
            "{}\t{}\t{}",
            row.id,
            row.metadata.unwrap_or_default(),
            row.document.unwrap_or_default()
        );
    }
    Ok(())
}
