//! What a machine runs out of: a log that nobody reads, disks that take no writes or no large files,
//! address space. The program itself.

use crate::support::process::{PROGRAM, Server, run};
use crate::support::{Client, http::frame};
use ciphervec_owner::store::Change;
use ciphervec_owner::{Mode, Precision, Scheme};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const COMPACT: (Mode, Precision, Scheme) =
    (Mode::SealedIndex, Precision::Standard, Scheme::Lattice);

fn program(data: &Path) -> Command {
    let mut program = Command::new(PROGRAM);
    program.args(["serve", "--data", data.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
    program.args(["--drain", "2s"]).env("CIPHERVEC_LOG", "info");
    program
}

/// The same program, started by a shell that sets something up first.
fn prepared(shell: &[&str], setup: &str, data: &Path) -> Command {
    let mut program = Command::new(shell[0]);
    program.args(&shell[1..]).args(["-c", &format!("{setup} && exec \"$0\" \"$@\""), PROGRAM]);
    program.args(["serve", "--data", data.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
    program
}

#[test]
fn a_log_whose_reader_is_gone_is_no_reason_to_stop() {
    let folder = tempfile::tempdir().unwrap();
    for format in ["text", "json"] {
        let mut program = program(&folder.path().join("db"));
        program.args(["--log-format", format]);
        let mut server = Server::spawn(program);
        assert!(server.get("/v1/collections").starts_with("HTTP/1.1 200"));
        drop(server.stderr());
        for path in ["/healthz", "/v1/collections", "/readyz"] {
            assert!(server.get(path).starts_with("HTTP/1.1 200"), "{format} {path}");
        }
        assert!(server.get("/v1/collections/x").starts_with("HTTP/1.1 404"), "{format}");
        server.signal("-TERM");
        assert_eq!(server.wait(), Some(0), "{format}");
    }
}

#[test]
fn a_log_whose_reader_does_not_read_is_no_reason_to_wait() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::spawn(program(&folder.path().join("db")));
    // Each leaves two lines in the log; a pipe holds 64 KiB.
    const REQUESTS: usize = 1500;
    let mut stream = server.connect();
    let mut writing = stream.try_clone().unwrap();
    let writer = std::thread::spawn(move || {
        for _ in 0..REQUESTS {
            writing.write_all(b"GET /v1/collections HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        }
    });
    let (mut answered, mut bytes) = (0, vec![0; 1 << 16]);
    let mut tail = String::new();
    while answered < REQUESTS {
        let count = stream.read(&mut bytes).unwrap();
        assert_ne!(count, 0, "closed after {answered} answers");
        tail.push_str(&String::from_utf8_lossy(&bytes[..count]));
        answered += tail.matches("HTTP/1.1 200").count();
        // What could be the start of another.
        let keep = tail.len().saturating_sub(11);
        tail = tail.split_off(keep);
    }
    writer.join().unwrap();
    server.signal("-TERM");
    assert_eq!(server.wait(), Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn a_log_on_a_full_disk_is_no_reason_not_to_start() {
    let folder = tempfile::tempdir().unwrap();
    // It cannot say which port it took.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut program = Command::new(PROGRAM);
    program.args(["serve", "--data", folder.path().join("db").to_str().unwrap()]);
    program.args(["--listen", &address.to_string(), "--drain", "2s"]);
    program.stderr(Stdio::from(File::create("/dev/full").unwrap()));
    let mut child = program.spawn().unwrap();
    let mut stream = (0..2000)
        .find_map(|_| {
            std::thread::sleep(Duration::from_millis(10));
            TcpStream::connect(address).ok()
        })
        .expect("it listens");
    stream
        .write_all(b"GET /v1/collections HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(killed.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

struct Sent {
    status: u16,
    json: serde_json::Value,
}

async fn send(server: &Server, method: &str, path: &str, body: Vec<u8>) -> Sent {
    // Another test may have installed it before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
    let url = format!("{}{path}", server.url);
    let answer = reqwest::Client::new().request(method, url).body(body).send().await.unwrap();
    let status = answer.status().as_u16();
    let bytes = answer.bytes().await.unwrap();
    Sent { status, json: serde_json::from_slice(&bytes).unwrap_or_default() }
}

async fn create(server: &Server, client: &Client) {
    let change = Change { set_meta: Some(client.meta()), ..Change::default() };
    let made = send(server, "PUT", "/v1/collections/faces", frame(&change)).await;
    assert_eq!(made.status, 201, "{}", made.json);
}

#[tokio::test]
async fn a_file_that_may_not_grow_is_a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("db");
    let server = Server::spawn(prepared(&["bash"], "ulimit -f 200", &data));
    let mut client = Client::new("faces", COMPACT);
    create(&server, &client).await;
    let commits = "/v1/collections/faces/commits";
    let small = frame(&client.add(10));
    assert_eq!(send(&server, "POST", commits, small).await.status, 200);
    let refused = send(&server, "POST", commits, frame(&client.add(4000))).await;
    assert_eq!(refused.status, 507, "{}", refused.json);
    assert_eq!(refused.json["type"], "urn:ciphervec:full");
    let upload =
        send(&server, "POST", "/v1/collections/faces/uploads", b"{\"length\":400000}".to_vec());
    let path = upload.await.json["upload"].as_str().unwrap().to_owned();
    let url = format!("{}/v1/collections/faces/uploads/{path}", server.url);
    let piece =
        reqwest::Client::new().patch(url).header("upload-offset", "0").body(vec![1; 400_000]);
    assert_eq!(piece.send().await.unwrap().status(), 507);
    assert_eq!(send(&server, "POST", commits, frame(&client.add(3))).await.status, 200);
    let found = send(&server, "GET", "/v1/collections/faces", Vec::new()).await;
    assert_eq!(found.json["statistics"]["rows"], 13);
    let verified = send(&server, "POST", "/v1/collections/faces/verify", Vec::new()).await;
    assert_eq!(verified.json["sound"], true, "{}", verified.json);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_folder_that_takes_no_writes_is_read_and_says_so() {
    let namespace = ["unshare", "--user", "--map-root-user", "--mount"];
    let possible = Command::new(namespace[0]).args(&namespace[1..]).arg("true").output();
    if !possible.is_ok_and(|done| done.status.success()) {
        eprintln!("skipped: this system gives nobody a mount namespace");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("db");
    let mut client = Client::new("faces", COMPACT);
    {
        let server = Server::start(&data, &[]);
        create(&server, &client).await;
        let change = frame(&client.add(10));
        assert_eq!(
            send(&server, "POST", "/v1/collections/faces/commits", change).await.status,
            200
        );
    }
    let shown = data.display();
    let setup = format!("mount --bind '{shown}' '{shown}' && mount -o remount,ro,bind '{shown}'");
    let program = prepared(&[&namespace[..], &["bash"]].concat(), &setup, &data);
    let server = Server::spawn(program);
    let query = client.query(1, 1).to_bytes().to_vec();
    let answered = send(&server, "POST", "/v1/collections/faces/query", query).await;
    assert_eq!(answered.status, 200, "{}", answered.json);
    let change = frame(&client.add(3));
    for (method, path, body) in [
        ("POST", "/v1/collections/faces/commits", change),
        ("POST", "/v1/collections/faces/purge", Vec::new()),
        ("PUT", "/v1/collections/faces/snapshots/a", Vec::new()),
        ("DELETE", "/v1/collections/faces", Vec::new()),
    ] {
        let refused = send(&server, method, path, body).await;
        assert_eq!(refused.status, 503, "{method} {path}: {}", refused.json);
        assert_eq!(refused.json["type"], "urn:ciphervec:read-only", "{method} {path}");
        assert!(refused.json["hint"].as_str().unwrap().contains("writable"));
    }
    let found = send(&server, "GET", "/v1/collections/faces", Vec::new()).await;
    assert_eq!(found.json["statistics"]["rows"], 10);
}

#[cfg(target_os = "linux")]
#[test]
fn less_memory_than_the_options_need_is_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("db");
    for mebibytes in [300, 600] {
        let setup = format!("ulimit -v {}", mebibytes * 1024);
        let refused = prepared(&["bash"], &setup, &data).output().unwrap();
        let says = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{mebibytes}: {says}");
        let named = ["ulimit -v", "--memory-budget", "--max-upload", "--max-body"];
        assert!(named.iter().all(|word| says.contains(word)), "{mebibytes}: {says}");
    }
    // What was left to the server it makes small enough itself; what was asked for it refuses.
    let limit = format!("ulimit -v {}", 1500 * 1024);
    let server = Server::spawn(prepared(&["bash"], &limit, &data));
    assert!(server.get("/readyz").starts_with("HTTP/1.1 200"));
    let mut asked = prepared(&["bash"], &limit, &data);
    let refused = asked.args(["--memory-budget", "4GiB"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    // Without a limit nothing changes.
    assert!(run(&["serve", "--help"]).status.success());
}
