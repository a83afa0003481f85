//! A server that answers anything: no bytes of its make the client panic, hang or believe them.

use ciphervec_client::{Choices, Head, block_on};
use proptest::prelude::*;

use crate::support::{Faulty, Server, client, connection, filled, keys, rows};

/// What an honest server answers to whoever opens a collection.
fn honest() -> Vec<(Head, Vec<u8>)> {
    let server = Server::start();
    let (host, _) = connection();
    filled(&server.client(&keys()), &host, &Choices::new("notes", 16), rows(5, 16, 1));
    let taping = Faulty::altering(|_, body| body);
    block_on(server.client(&keys()).get_collection(&taping, "notes", false, None)).unwrap();
    taping.tape.take()
}

/// What a client makes of these answers: whether it took them.
fn opens(answers: Vec<(Head, Vec<u8>)>) -> bool {
    let host = Faulty::scripted(answers);
    let client = client("http://127.0.0.1:9", &keys());
    block_on(client.get_collection(&host, "notes", false, None)).is_ok()
}

#[test]
fn what_an_honest_server_said_opens_elsewhere_and_no_changed_byte_of_it_is_believed() {
    let honest = honest();
    assert!(opens(honest.clone()), "nothing of it names the server");
    let bodies: Vec<_> = honest.iter().map(|(_, body)| body.len()).collect();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(600));
    let place = (0..honest.len(), 0usize..1 << 20, 1u8..=255);
    let check = |(answer, at, bits): (usize, usize, u8)| {
        let mut changed = honest.clone();
        let body = &mut changed[answer].1;
        if body.is_empty() {
            return Ok(());
        }
        let at = at % body.len();
        body[at] ^= bits;
        // Of the listing, what says nothing of the collection's content is the server's own word: version, head, statistics, times, and
        // the lengths of blobs, which those that are read must have.
        let bare = |body: &[u8]| {
            let mut value: serde_json::Value =
                serde_json::from_str(&String::from_utf8_lossy(body)).ok()?;
            for segment in value["segments"].as_array_mut()? {
                for length in segment["blobs"].as_object_mut()?.values_mut() {
                    *length = serde_json::json!(length.is_u64());
                }
                // A field of another name is as none, and the rows of none are deleted.
                let deleted =
                    segment.get("deleted").cloned().unwrap_or_else(|| serde_json::json!([]));
                *segment =
                    serde_json::json!([segment["id"], segment["rows"], deleted, segment["blobs"]]);
            }
            Some(["name", "meta", "segments", "evaluation"].map(|field| value[field].clone()))
        };
        // Servers need not say which evaluation keys they answer with.
        let own_words = answer == 0
            && bare(&changed[0].1).zip(bare(&honest[0].1)).is_some_and(|(now, then)| {
                now[..3] == then[..3] && (now[3].is_null() || now[3] == then[3])
            });
        let near = at.saturating_sub(20)..(at + 20).min(changed[answer].1.len());
        let said = String::from_utf8_lossy(&changed[answer].1[near]).into_owned();
        prop_assert!(
            own_words || !opens(changed),
            "byte {at} of answer {answer} of {bodies:?}: {}",
            said
        );
        Ok(())
    };
    runner.run(&place, check).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn answers_of_any_bytes_are_refused(
        answers in proptest::collection::vec(
            (any::<u16>(), proptest::option::of("[ -~]{0,20}"), proptest::collection::vec(any::<u8>(), 0..200)), 0..6
        ),
    ) {
        let answers = answers.into_iter().map(|(status, range, body)| {
            let mut headers = vec![("ciphervec-api".to_owned(), "1".to_owned())];
            headers.extend(range.map(|range| ("content-range".to_owned(), range)));
            (Head { status: status % 600, headers }, body)
        });
        prop_assert!(!opens(answers.collect()));
    }
}
