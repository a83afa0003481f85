//! A server that goes back, or shows what its owner did not make.

use ciphervec_client::{Choices, Error, block_on};

use crate::support::{Server, connection, filled, keys, rows};

const D: usize = 16;

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

#[test]
fn a_store_that_went_back_is_noticed_by_the_next_process() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start();
    let state = ciphervec_client::Connection::new(folder.path()).unwrap();
    let docs = filled(&server.client(&keys()), &state, &Choices::new("notes", D), rows(4, D, 1));
    let backup = tempfile::tempdir().unwrap();
    copy(&server.folder.path().join("db"), backup.path());
    block_on(docs.add(&state, rows(4, D, 2))).unwrap();
    drop(docs);
    // The same URL is served from the copy: what was seen is filed under it.
    let old = Server::start_on(server, backup.path());
    let error =
        block_on(old.client(&keys()).get_collection(&state, "notes", false, None)).err().unwrap();
    assert!(matches!(error, Error::RolledBack(_)), "{error}");
    // A client that has seen nothing takes it: trust on first use.
    let (fresh, _) = connection();
    assert!(block_on(old.client(&keys()).get_collection(&fresh, "notes", false, None)).is_ok());
    // And who knows a checkpoint of the newer history does not.
    block_on(old.client(&keys()).forget(&state, "notes")).unwrap();
    assert!(block_on(old.client(&keys()).get_collection(&state, "notes", false, None)).is_ok());
}

#[test]
fn a_checkpoint_of_another_history_is_refused() {
    let server = Server::start();
    let (host, _) = connection();
    let docs = filled(&server.client(&keys()), &host, &Choices::new("notes", D), rows(4, D, 1));
    let checkpoint = block_on(docs.checkpoint(&host)).unwrap();
    block_on(docs.add(&host, rows(4, D, 2))).unwrap();
    block_on(docs.expect(&host, &checkpoint)).unwrap();
    let others = filled(&server.client(&keys()), &host, &Choices::new("letters", D), rows(4, D, 1));
    let error = block_on(others.expect(&host, &checkpoint)).err().unwrap();
    assert!(matches!(error, Error::RolledBack(_)), "{error}");
    assert!(matches!(block_on(others.expect(&host, "nonsense")), Err(Error::Input(_))));
}
