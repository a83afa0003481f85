//! What the server allocates for giant claims is bounded by the bytes that came.
//!
//! One test in a binary of its own: the allocator counts the whole process.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "suite/support/http.rs"]
mod http;

use axum::body::{Body, Bytes};
use ciphervec_server::change::{Decoder, MAX_JSON};
use http::{Site, raw_frame};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const MIB: usize = 1 << 20;

fn peak<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let done = work();
    (ALLOCATOR.peak_usage().saturating_sub(before), done)
}

#[test]
fn what_is_announced_takes_no_memory_before_it_comes() {
    // The frame itself: a claim of a terabyte within a limit of two, then a thousand bytes of it.
    let claim = raw_frame(r#"{"meta":{"length":1099511627776}}"#, &[7; 1000]);
    let (bytes, pushed) = peak(|| {
        let mut decoder = Decoder::new(1 << 41, None);
        decoder.push(&claim).map(|()| decoder)
    });
    assert!(pushed.is_ok());
    assert!(bytes < MIB, "{bytes} bytes for a thousand");

    // A whole frame takes its length twice at most, however small its pieces are.
    let payload = vec![1u8; 8 * MIB];
    let whole = raw_frame(&format!(r#"{{"meta":{{"length":{}}}}}"#, payload.len()), &payload);
    let (bytes, _) = peak(|| {
        let mut decoder = Decoder::new(1 << 30, None);
        whole.chunks(1400).try_for_each(|piece| decoder.push(piece)).unwrap();
        decoder.finish().unwrap()
    });
    assert!(bytes <= 2 * payload.len() + MIB, "{bytes} bytes for {}", payload.len());

    // The densest JSON: many small entries are refused before they are many.
    let most = MAX_JSON as usize - 64;
    for json in [
        format!(r#"{{"drop_attachments":[{}"a"]}}"#, r#""a","#.repeat(most / 4 - 8)),
        format!(r#"{{"remove":[{}""]}}"#, r#""","#.repeat(most / 3 - 8)),
        format!(r#"{{"add":[{}{{}}]}}"#, "{},".repeat(most / 3 - 8)),
        format!(r#"{{"delete_rows":{{"{}":[{}0]}}}}"#, "0".repeat(32), "0,".repeat(most / 2 - 64)),
    ] {
        let frame = raw_frame(&json, b"");
        let (bytes, _) = peak(|| {
            let mut decoder = Decoder::new(1 << 30, None);
            decoder.push(&frame).and_then(|()| decoder.finish().map(drop))
        });
        // Row numbers, four bytes for two characters, in a list that doubles.
        assert!(bytes <= 6 * frame.len() + MIB, "{bytes} bytes for {} of JSON", frame.len());
    }

    // Through the router: a Content-Length is a claim too.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let site = runtime.block_on(async { Site::open(&["--max-body", "1GiB"]) });
    let headers = [("content-length", "1000000000")];
    let (bytes, reply) = peak(|| {
        runtime.block_on(async {
            let few = futures_util::stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(
                &[0; 100],
            ))]);
            site.send("PUT", "/v1/collections/faces", &headers, Body::from_stream(few)).await
        })
    });
    assert_eq!(reply.status, 400);
    assert!(bytes < MIB, "{bytes} bytes for a hundred");
}
