//! What Python clients of earlier releases remembered still counts.

use std::fs;
use std::path::Path;
use std::time::Duration;

use ciphervec_client::{
    Choices, Client, ClientOptions, Collection, Connection, Error, Face, Host, Request, Storage,
    block_on,
};
use ciphervec_owner::search::Owner;
use serde_json::{Value, json};

use crate::support::{All, Server, connection, filled, keys, rows};

const D: usize = 16;

/// Where they kept it: hashes of the server's URL and of the name.
fn place(state: &Path, url: &str) -> std::path::PathBuf {
    let probe = tempfile::tempdir().unwrap();
    let storage = Storage::new(probe.path()).unwrap();
    storage.put(&format!("former/server\n{url}\nnotes"), b"x").unwrap();
    let servers = fs::read_dir(probe.path().join("servers")).unwrap().next().unwrap().unwrap();
    let file = fs::read_dir(servers.path()).unwrap().next().unwrap().unwrap();
    state.join("servers").join(servers.file_name()).join(file.file_name())
}

/// By what its owner says in the present state.
fn origin_of(server: &Server, host: &Connection, docs: &Collection) -> String {
    let url = format!("{}/v1/collections/notes/attachments/state", server.url);
    let request = Request { method: "GET", url, headers: Vec::new(), body: None };
    let mut said = All::default();
    block_on(host.send(&request, Duration::from_secs(9), &mut said)).unwrap();
    let owner = Owner::new(&keys(), docs.spec().clone()).unwrap();
    let record = owner.open_state(&said.body).unwrap();
    record.origin.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_server_gains_no_clean_record_by_an_upgrade_of_its_client() {
    let server = Server::start();
    let (host, _warnings) = connection();
    let docs = filled(&server.client(&keys()), &host, &Choices::new("notes", D), rows(20, D, 1));
    let look = block_on(server.client(&keys()).look(&host, "notes")).unwrap();
    let meta: Value = serde_json::from_slice(&look.meta).unwrap();
    let info = block_on(docs.info(&host, None)).unwrap();
    let (sequence, lineage) = info.state.unwrap();
    let origin = origin_of(&server, &host, &docs);
    let state = |origin: &str, sequence: u64, lineage: &str| {
        let name = "34".repeat(16);
        json!({"origin": origin, "lineage": lineage, "sequence": sequence, "name": name, "epoch": 0, "left": []})
    };
    let saw = |version: u64, key_id: &Value, state: Value| {
        json!({
            "format": if state.is_null() { 1 } else { 2 },
            "server": server.url,
            "collection": "notes",
            "version": version,
            "head": "ab".repeat(32),
            "pins": {"spec": meta["spec"], "key id": key_id},
            "state": state,
        })
    };
    let open = |face, folder: &Path| {
        let options = ClientOptions {
            keys: Some(keys().into()),
            face,
            ..ClientOptions::new(server.url.clone())
        };
        let client = Client::new(options).unwrap();
        let host = Connection::new(folder).unwrap().on_warning(|_| ());
        block_on(client.get_collection(&host, "notes", false, None)).map(drop)
    };
    let before = look.version - 1;
    let right = &meta["key_id"];
    for (number, (said, refused)) in [
        (saw(before, right, Value::Null), ""),
        (saw(before, &json!("00".repeat(8)), Value::Null), "mismatch"),
        (saw(before, right, state(&origin, sequence + 5, &lineage)), "rolled back"),
        (saw(before, right, state(&"56".repeat(16), sequence, &lineage)), "mismatch"),
        (saw(look.version + 1, right, Value::Null), "rolled back"),
        (json!({"format": 3}), "corrupt"),
    ]
    .into_iter()
    .enumerate()
    {
        let folder = tempfile::tempdir().unwrap();
        let path = place(folder.path(), &server.url);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, said.to_string()).unwrap();
        let found = match open(Face::Python, folder.path()) {
            Ok(()) => "",
            Err(Error::Mismatch(_)) => "mismatch",
            Err(Error::RolledBack(_)) => "rolled back",
            Err(Error::Corrupt(_)) => "corrupt",
            Err(error) => panic!("{number}: {error}"),
        };
        assert_eq!(found, refused, "{number}");
        // Whoever forgets it on purpose goes on.
        let client = Client::new(ClientOptions {
            keys: Some(keys().into()),
            face: Face::Python,
            ..ClientOptions::new(server.url.clone())
        });
        let host = Connection::new(folder.path()).unwrap().on_warning(|_| ());
        block_on(client.unwrap().forget(&host, "notes")).unwrap();
        open(Face::Python, folder.path()).unwrap();
        assert!(!path.exists());
    }
}
