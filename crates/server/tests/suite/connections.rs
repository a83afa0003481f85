//! The program itself under silent, slow and idle connections, which cost their peer nothing: it
//! still serves others.

use crate::support::process::{Server, certificate, read_all};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Short times, and room for few.
const SHORT: [&str; 8] =
    ["--patience", "600ms", "--idle", "600ms", "--connections", "8", "--per-address", "8"];
const GET: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0........";

fn count(server: &Server, line: &str) -> u64 {
    let metrics = server.get("/metrics");
    let found = metrics.lines().find_map(|found| found.strip_prefix(line));
    found.map_or(0, |value| value.trim().parse().unwrap())
}

/// Sends `again` and again until the server closes; a timeout of the socket fails the test.
fn until_closed(what: &str, mut stream: TcpStream, first: &[u8], again: &[u8]) {
    stream.write_all(first).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    for _ in 0..600 {
        match stream.read(&mut [0; 4096]) {
            Ok(0) => return,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return,
            Ok(_) => continue,
        }
        if stream.write_all(again).is_err() {
            return;
        }
    }
    panic!("{what}: still open");
}

#[test]
fn a_connection_that_brings_nothing_or_never_ends_its_headers_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("db"), &SHORT);
    let kinds: [(&str, &[u8], &[u8]); 8] = [
        ("no byte at all", b"", b""),
        ("one byte", b"G", b""),
        ("a byte now and then", b"GET /healthz HTTP/1.1\r\nX: ", b"x"),
        ("headers without end", b"GET /healthz HTTP/1.1\r\n", b"X: x\r\n"),
        ("half of what HTTP/2 begins with", b"PRI * HT", b""),
        ("HTTP/2 and nothing more", PREFACE, b""),
        ("HTTP/2 that only pings", PREFACE, PING),
        ("one request and nothing more", GET, b""),
    ];
    std::thread::scope(|scope| {
        for (what, first, again) in kinds {
            let stream = server.connect();
            scope.spawn(move || until_closed(what, stream, first, again));
        }
    });
    assert!(count(&server, "ciphervec_closed_connections_total{reason=\"silent\"} ") >= 6);
    assert!(count(&server, "ciphervec_closed_connections_total{reason=\"idle\"} ") >= 1);
}

#[test]
fn a_handshake_that_is_not_finished_counts_from_the_first_moment() {
    let folder = tempfile::tempdir().unwrap();
    certificate(folder.path());
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    let tls = ["--tls-cert", cert.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
    let server = Server::start(&folder.path().join("db"), &[&SHORT[..], &tls].concat());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (silent, slow) = (server.connect(), server.connect());
            scope.spawn(move || until_closed("silent before TLS", silent, b"", b""));
            // A record of 512 bytes that comes byte by byte.
            let hello = b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03";
            scope.spawn(move || until_closed("a slow handshake", slow, hello, b"x"));
        }
    });
}

#[test]
fn however_many_connections_rest_another_gets_in() {
    let folder = tempfile::tempdir().unwrap();
    // Times so long that nothing but the need for room closes anything.
    let long = ["--patience", "60s", "--idle", "60s", "--connections", "8", "--per-address", "8"];
    let server = Server::start(&folder.path().join("db"), &long);
    let mut hoard: Vec<TcpStream> = Vec::new();
    for round in 0..5 {
        for kind in [&b""[..], b"G", PREFACE, GET] {
            for _ in 0..4 {
                let mut stream = server.connect();
                // One that was closed to make room takes nothing.
                let _ = stream.write_all(kind);
                hoard.push(stream);
            }
        }
        let answer = server.get("/healthz");
        assert!(answer.starts_with("HTTP/1.1 200"), "round {round}: {answer:?}");
    }
    // Whoever asks takes a seat itself; those that were pushed out close a moment later.
    let (crowded, open) =
        ("ciphervec_closed_connections_total{reason=\"crowded\"} ", "ciphervec_connections ");
    let settles = (0..400).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        count(&server, open) <= 8 && count(&server, crowded) >= 60
    });
    assert!(settles, "{} open, {} pushed out", count(&server, open), count(&server, crowded));
    drop(hoard);
}

#[test]
fn one_address_has_no_more_than_its_share() {
    let folder = tempfile::tempdir().unwrap();
    let limits = ["--connections", "64", "--per-address", "3", "--patience", "5s"];
    let server = Server::start(&folder.path().join("db"), &limits);
    // Those at work cannot be taken for idle ones, so the fourth is closed at once.
    let start =
        b"PUT /v1/collections/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nab";
    let mut working: Vec<TcpStream> = Vec::new();
    for number in 0..3 {
        let mut stream = server.connect();
        stream.write_all(start).unwrap();
        working.push(stream);
        let open = |count: usize| {
            (0..200).any(|_| {
                std::thread::sleep(Duration::from_millis(5));
                count == number + 1
            })
        };
        assert!(open(working.len()));
    }
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(read_all(&mut server.connect()), "");
    // Another address is another's.
    let other = std::net::SocketAddr::from(([127, 0, 0, 2], 0));
    let target: std::net::SocketAddr = server.url.split("//").nth(1).unwrap().parse().unwrap();
    let runtime = crate::support::runtime();
    let served = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        if socket.bind(other).is_err() {
            // Not every system has more than one address on loopback.
            return None;
        }
        let stream = socket.connect(target).await.unwrap();
        stream.writable().await.unwrap();
        stream
            .try_write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut stream = stream.into_std().unwrap();
        stream.set_nonblocking(false).unwrap();
        Some(read_all(&mut stream))
    });
    assert!(served.is_none_or(|answer| answer.starts_with("HTTP/1.1 200")));
    drop(working);
}

#[test]
fn a_refused_body_is_read_or_the_end_of_the_connection_is_announced() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("db"), &["--max-body", "1MiB"]);
    let refused = |request: String, body: &[u8]| {
        let mut stream = server.connect();
        stream.write_all(request.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        let mut answer = Vec::new();
        while !answer.windows(4).any(|end| end == b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            answer.push(byte[0]);
        }
        let head = String::from_utf8(answer).unwrap().to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        std::io::copy(&mut (&stream).take(length.parse().unwrap()), &mut std::io::sink()).unwrap();
        (stream, head)
    };
    let post = |path: &str, more: &str| {
        format!("POST /v1/collections/{path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n\r\n")
    };
    let body = vec![b'x'; 300_000];
    // Refused before the body was looked at: what came is read, and the next request is answered.
    for path in ["nope/query", "nope/commits", "x/snapshots/a/restore", "nowhere/at/all"] {
        let (mut stream, head) = refused(post(path, "Content-Length: 300000"), &body);
        assert!(head.starts_with("http/1.1 40") && !head.contains("connection: close"), "{head}");
        stream.write_all(GET).unwrap();
        let mut again = [0; 12];
        stream.read_exact(&mut again).unwrap();
        assert_eq!(&again, b"HTTP/1.1 200", "{path}");
    }
    // Too much to be read for nothing, or asked for first: it says that this was the last answer.
    let large = ["Content-Length: 3000000000", "Content-Length: 9\r\nExpect: 100-continue"];
    for more in large {
        for path in ["nope/query", "nope/commits", "nowhere/at/all"] {
            let (mut stream, head) = refused(post(path, more), b"");
            assert!(head.starts_with("http/1.1 4"), "{head}");
            assert!(head.contains("connection: close"), "{path} {more}: {head}");
            assert_eq!(read_all(&mut stream), "");
        }
    }
}
