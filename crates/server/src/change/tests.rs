//! Tests of the change frame: good and hostile frames, whole and in pieces.

use super::*;
use proptest::prelude::*;

const LIMIT: u64 = 1 << 20;
const ID: &str = "000102030405060708090a0b0c0d0e0f";

fn frame(json: &str, blobs: &[u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend((json.len() as u32).to_le_bytes());
    bytes.extend(json.as_bytes());
    bytes.extend(blobs);
    bytes
}

fn read(bytes: &[u8]) -> Result<Change, ChangeError> {
    Frame::from_bytes(bytes, LIMIT)?.into_change(|_| Ok(Vec::new()))
}

fn full() -> Vec<u8> {
    let json = format!(
        r#"{{"add":[{{"id":"{ID}","rows":3,"blobs":[{{"name":"rows","length":4}},{{"name":"tags","length":0}}]}}],
        "remove":["{ID}"],"delete_rows":{{"{ID}":[0,2]}},"meta":{{"length":2}},
        "attachments":[{{"name":"evaluation","length":3}}],"drop_attachments":["old"]}}"#
    );
    frame(&json, b"abcdMMeee")
}

#[test]
fn a_frame_says_what_it_does_in_the_order_of_its_bytes() {
    let id: [u8; 16] = core::array::from_fn(|index| index as u8);
    let blobs = vec![("rows".into(), b"abcd".to_vec()), ("tags".into(), Vec::new())];
    let expected = Change {
        add: vec![NewSegment { id, rows: 3, blobs }],
        remove: vec![id],
        delete_rows: vec![(id, vec![0, 2])],
        set_meta: Some(b"MM".to_vec()),
        attachments: vec![("evaluation".into(), b"eee".to_vec())],
        drop_attachments: vec!["old".into()],
    };
    assert_eq!(read(&full()), Ok(expected));
    assert_eq!(read(&frame("{}", b"")), Ok(Change::default()));
}

#[test]
fn every_cut_and_every_extra_byte_is_noticed() {
    let whole = full();
    for length in 0..whole.len() {
        assert!(read(&whole[..length]).is_err(), "cut at {length}");
        let mut decoder = Decoder::new(LIMIT, None);
        let cut = decoder.push(&whole[..length]).and_then(|()| decoder.finish().map(|_| ()));
        assert!(matches!(cut, Err(ChangeError::Length { .. })), "cut at {length}: {cut:?}");
    }
    let mut longer = whole;
    longer.push(0);
    assert!(matches!(read(&longer), Err(ChangeError::Length { .. })));
}

#[test]
fn claims_are_refused_before_they_take_memory() {
    let giant = r#"{"meta":{"length":18446744073709551615}}"#;
    assert!(matches!(read(&frame(giant, b"")), Err(ChangeError::TooLarge { .. })));
    let many = r#"{"attachments":[{"name":"a","length":900000},{"name":"b","length":900000}]}"#;
    assert!(matches!(read(&frame(many, b"")), Err(ChangeError::TooLarge { .. })));
    let mut head = frame("", b"");
    head[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(read(&head), Err(ChangeError::TooLarge { .. })));
    // A claim within the limit takes what came, twice at most, and the first piece.
    let mut decoder = Decoder::new(1 << 40, None);
    decoder.push(&frame(r#"{"meta":{"length":1000000000000}}"#, &[7; 1000])).expect("in limits");
    let Source::Inline(body) = &decoder.parts[0].source else { panic!("inline") };
    assert!(body.capacity() <= FIRST_PIECE);
}

#[test]
fn json_that_means_something_else_is_refused() {
    let upper = ID.to_uppercase();
    for json in [
        "",
        "[]",
        "{",
        "{} ",
        r#"{"ad":[]}"#,
        r#"{"add":[{"id":"00","rows":1,"blobs":[]}]}"#,
        r#"{"add":null}"#,
        r#"{"add":[["000102030405060708090a0b0c0d0e0f",1,[]]]}"#,
        r#"{"meta":[0,null,null]}"#,
        r#"{"meta":{"length":-1}}"#,
        r#"{"meta":{"length":1.5}}"#,
        r#"{"meta":{"length":1},"meta":{"length":1}}"#,
        r#"{"meta":{"length":0,"extra":1}}"#,
        r#"{"drop_attachments":[1]}"#,
        &format!(r#"{{"remove":["{upper}"]}}"#),
        &format!(r#"{{"delete_rows":{{"{ID}":[1],"{ID}":[2]}}}}"#),
        &format!(r#"{{"delete_rows":{{"{ID}":[4294967296]}}}}"#),
        &format!(r#"{{"drop_attachments":[{}"x"]}}"#, r#""x","#.repeat(64)),
    ] {
        let refused = read(&frame(json, b""));
        let spaced = json == "{} ";
        assert!(refused.is_err() != spaced, "{json}: {refused:?}");
    }
    assert_eq!(read(b"GET / HTTP/1.1\r\n"), Err(ChangeError::Magic));
    let mut later = frame("{}", b"");
    later[8] = 2;
    assert_eq!(read(&later), Err(ChangeError::Version(2)));
}

#[test]
fn an_upload_is_what_the_frame_says_or_nothing() {
    let hash = hex::show(blake3::hash(b"content").as_bytes());
    let json = |length: u64, hash: &str| {
        format!(
            r#"{{"attachments":[{{"name":"evaluation","length":{length},"upload":"{ID}","blake3":"{hash}"}}]}}"#
        )
    };
    let whole = Frame::from_bytes(&frame(&json(7, &hash), b""), LIMIT).expect("a frame");
    assert_eq!(whole.uploaded_bytes(), 7);
    let change =
        whole.into_change(|_| Ok::<_, ChangeError>(b"content".to_vec())).expect("as named");
    assert_eq!(change.attachments, [("evaluation".to_owned(), b"content".to_vec())]);
    for (length, hash, content) in
        [(8, hash.as_str(), b"content"), (7, &hash, b"Content"), (7, &"0".repeat(64), b"content")]
    {
        let frame = Frame::from_bytes(&frame(&json(length, hash), b""), LIMIT).expect("a frame");
        let refused = frame.into_change(|_| Ok::<_, ChangeError>(content.to_vec()));
        assert!(matches!(refused, Err(ChangeError::Content { .. })));
    }
    let lone = format!(r#"{{"meta":{{"length":7,"upload":"{ID}"}}}}"#);
    assert_eq!(read(&frame(&lone, b"")), Err(ChangeError::Upload("meta".into())));
}

#[test]
fn a_collection_starts_with_meta_and_attachments_only() {
    let created = creation(read(&frame(r#"{"meta":{"length":2}}"#, b"ab")).expect("a frame"));
    assert_eq!(created, Ok((b"ab".to_vec(), Vec::new())));
    assert!(creation(Change::default()).is_err());
    assert!(creation(read(&full()).expect("a frame")).is_err());
}

proptest! {
    #[test]
    fn pieces_of_any_size_read_as_the_whole(sizes in proptest::collection::vec(1usize..40, 1..40)) {
        let whole = full();
        let mut decoder = Decoder::new(LIMIT, None);
        let (mut rest, mut sizes) = (whole.as_slice(), sizes.iter().cycle());
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.len().min(*sizes.next().unwrap_or(&1)));
            decoder.push(piece).expect("a good frame");
            rest = after;
        }
        let change = decoder.finish().expect("whole").into_change(|_| Ok::<_, ChangeError>(Vec::new()));
        prop_assert_eq!(change, read(&whole));
    }

    #[test]
    fn no_bytes_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), json in any::<bool>()) {
        if json {
            bytes = frame(&String::from_utf8_lossy(&bytes), b"");
        }
        let _ = read(&bytes);
    }
}
