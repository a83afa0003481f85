//! The program itself, as an operator runs it: refusals, TLS, HTTP/2, slow senders, the end.

use crate::support::process::{PROGRAM, Server, certificate, read_all, run, trusting};
use std::io::Write;
use std::process::Command;
use std::time::Duration;

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
        "--permission",
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
fn without_tokens_no_site_of_another_machine_is_let_in() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("db");
    let words = ["serve", "--data", data.to_str().unwrap(), "--listen", "127.0.0.1:0"];
    let refused = run(&[&words[..], &["--allow-origin", "https://app.example"]].concat());
    let says = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(says.contains("https://app.example") && says.contains("token create"), "{says}");
    for wrong in ["*", "https://app.example/", "app.example"] {
        let refused = run(&[&words[..], &["--allow-origin", wrong]].concat());
        assert_eq!(refused.status.code(), Some(2), "{wrong}");
    }
    let server = Server::start(&data, &["--allow-origin", "http://localhost:5173"]);
    assert!(server.get("/").contains("<html"));
}

#[test]
fn the_console_is_switched_off_by_a_variable_too() {
    let folder = tempfile::tempdir().unwrap();
    for (value, shown) in [("1", false), ("true", false), ("no", true), ("0", true)] {
        let mut program = Command::new(PROGRAM);
        program.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(folder.path().join(value));
        program.env("CIPHERVEC_NO_CONSOLE", value);
        let server = Server::spawn(program);
        assert_eq!(server.get("/").contains("<html"), shown, "{value}");
    }
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
    let server = Server::start(
        &folder.path().join("db"),
        &["--patience", "1s", "--connections", "2", "--per-address", "2"],
    );
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
    // Those that wait for the rest of a body are at work.
    let start =
        b"PUT /v1/collections/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nab";
    let held = [server.connect(), server.connect()].map(|mut held| {
        held.write_all(start).unwrap();
        held
    });
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
