//! The program itself, as an operator runs it: refusals, TLS, HTTP/2, slow senders, the end.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_ciphervec-server");

struct Server {
    child: Child,
    /// `http://127.0.0.1:port`
    url: String,
    _stderr: Option<BufReader<ChildStderr>>,
}

/// A test that fails leaves nothing running.
impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(data: &Path, extra: &[&str]) -> Self {
        let child = Command::new(PROGRAM)
            .args(["serve", "--data", data.to_str().unwrap(), "--listen", "127.0.0.1:0"])
            .args(extra)
            .env("CIPHERVEC_LOG", "warn")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut server = Server { child, url: String::new(), _stderr: None };
        let mut stderr = BufReader::new(server.child.stderr.take().unwrap());
        let mut line = String::new();
        while server.url.is_empty() {
            line.clear();
            assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "the server ended");
            server.url = line.strip_prefix("listening on ").unwrap_or_default().trim().to_owned();
        }
        server._stderr = Some(stderr);
        server
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.url.split("//").nth(1).unwrap()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// Its exit code.
    fn wait(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

fn run(words: &[&str]) -> Output {
    Command::new(PROGRAM).args(words).output().unwrap()
}

fn read_all(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    // A connection that the server closes hard has said what it had to say.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn certificate(folder: &Path) -> reqwest::Certificate {
    let made =
        rcgen::generate_simple_self_signed(vec!["localhost".into(), "127.0.0.1".into()]).unwrap();
    std::fs::write(folder.join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    reqwest::Certificate::from_pem(made.cert.pem().as_bytes()).unwrap()
}

fn trusting(root: reqwest::Certificate) -> reqwest::Client {
    // Another test may have installed it before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().tls_certs_only([root]).build().unwrap()
}

#[test]
fn off_loopback_it_wants_tls_and_a_live_token_and_says_how() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("db");
    let data = data.to_str().unwrap();
    let refused = |extra: &[&str]| {
        let words = [&["serve", "--data", data, "--listen", "0.0.0.0:0"], extra].concat();
        let output = run(&words);
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let says = refused(&[]);
    assert!(says.contains("without TLS") && says.contains("--tls-cert"), "{says}");
    certificate(folder.path());
    let cert = folder.path().join("cert.pem");
    let key = folder.path().join("key.pem");
    let tls = ["--tls-cert", cert.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
    let says = refused(&tls);
    assert!(
        says.contains("without a live token") && says.contains("ciphervec token create"),
        "{says}"
    );
    let made = run(&[
        "token",
        "create",
        "--data",
        data,
        "--collection",
        "*",
        "--verb",
        "admin",
        "--expires",
        "1h",
    ]);
    let token = String::from_utf8(made.stdout).unwrap();
    assert!(token.starts_with("cv1_") && token.trim().len() == 47);
    let list = String::from_utf8(run(&["token", "list", "--data", data]).stdout).unwrap();
    assert!(list.contains("live") && list.contains("admin on *") && !list.contains(token.trim()));
    let id = list.split(' ').next().unwrap();
    assert!(run(&["token", "revoke", "--data", data, id]).status.success());
    assert!(refused(&tls).contains("without a live token"));
    let lone = run(&["serve", "--data", data, "--tls-cert", cert.to_str().unwrap()]);
    assert_eq!(lone.status.code(), Some(2));
}

#[test]
fn requests_in_flight_end_before_the_server_does() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("db"), &[]);
    let mut slow = server.connect();
    slow.write_all(
        b"PUT /v1/collections/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nab",
    )
    .unwrap();
    // The server has read the head once it answers another connection that came later.
    let mut other = server.connect();
    other
        .write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    assert!(read_all(&mut other).starts_with("HTTP/1.1 200"));
    std::thread::sleep(Duration::from_millis(200));
    server.signal("-TERM");
    std::thread::sleep(Duration::from_millis(200));
    slow.write_all(b"cd").unwrap();
    let answer = read_all(&mut slow);
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn slow_senders_are_told_or_dropped_and_too_many_connections_closed() {
    let folder = tempfile::tempdir().unwrap();
    let server =
        Server::start(&folder.path().join("db"), &["--patience", "300ms", "--connections", "2"]);
    let mut body = server.connect();
    body.write_all(
        b"PUT /v1/collections/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nab",
    )
    .unwrap();
    let answer = read_all(&mut body);
    assert!(
        answer.starts_with("HTTP/1.1 408") && answer.contains("urn:ciphervec:timeout"),
        "{answer}"
    );
    drop(body);
    let held = [server.connect(), server.connect()];
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(read_all(&mut server.connect()), "");
    drop(held);
    std::thread::sleep(Duration::from_millis(200));
    let mut free = server.connect();
    free.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    assert!(read_all(&mut free).starts_with("HTTP/1.1 200"));
    server.signal("-INT");
    assert_eq!(server.wait(), Some(0));
}

#[tokio::test]
async fn tls_speaks_http2_and_certificates_change_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let first = trusting(certificate(folder.path()));
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    let (cert, key) = (cert.to_str().unwrap(), key.to_str().unwrap());
    // This thread waits for the end, so that its idle connections do not hear of it.
    let tls = ["--tls-cert", cert, "--tls-key", key, "--drain", "1s"];
    let server = Server::start(&folder.path().join("db"), &tls);
    assert!(server.url.starts_with("https://"));
    let url = format!("{}/v1", server.url);
    let answer = first.get(&url).send().await.unwrap();
    assert_eq!(answer.version(), reqwest::Version::HTTP_2);
    assert_eq!(answer.status(), 200);
    let second = trusting(certificate(folder.path()));
    assert!(second.get(&url).send().await.is_err());
    server.signal("-HUP");
    let mut trusted = false;
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        trusted = second.get(&url).send().await.is_ok();
        if trusted {
            break;
        }
    }
    assert!(trusted, "the new certificate is not served");
    server.signal("-TERM");
    assert_eq!(server.wait(), Some(0));
}
