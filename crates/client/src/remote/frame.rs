//! The bytes of one commit over HTTP: `CVCHANGE | version u32 | JSON length u32 | JSON | blobs back to back`, little-endian. The blobs
//! stand in the order in which the JSON names them: those of new segments, the description, the attachments. One that was uploaded has
//! a hash instead.

use std::collections::{BTreeMap, HashMap};

use ciphervec_owner::SegmentId;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::change::{Change, NewSegment, RECORDS, ROWS, SIDECAR, WRAP};
use crate::error::{Error, Result};
use crate::gathered::gathered;
use crate::hex::Hex;
use crate::json;

const MAGIC: &[u8] = b"CVCHANGE";
const VERSION: u32 = 1;

/// A blob's segment and name; no segment for an attachment, and for the description with an empty name.
pub type Place = (Option<SegmentId>, &'static str);

/// An upload that holds a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// 32 hexadecimal digits.
    pub id: String,
    pub blake3: [u8; 32],
}

#[derive(Serialize)]
struct Blob<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    length: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    upload: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blake3: Option<Hex<32>>,
}

#[derive(Serialize)]
struct Added<'a> {
    id: Hex<16>,
    rows: u32,
    blobs: Vec<Blob<'a>>,
}

#[derive(Serialize)]
struct Content<'a> {
    add: Vec<Added<'a>>,
    remove: Vec<Hex<16>>,
    delete_rows: BTreeMap<String, &'a [u32]>,
    attachments: Vec<Blob<'a>>,
    drop_attachments: [(); 0],
    #[serde(skip_serializing_if = "Option::is_none")]
    meta: Option<Blob<'a>>,
}

/// Every blob of a change, in the order in which a frame has them.
pub fn blobs(change: &Change) -> impl Iterator<Item = (Place, &[u8])> {
    let of = change
        .add
        .iter()
        .flat_map(|new| new.blobs.iter().map(|(name, data)| ((Some(new.id), *name), &**data)));
    let meta = change.meta.iter().map(|meta| ((None, ""), meta.as_slice()));
    of.chain(meta)
        .chain(change.attachments.iter().map(|(name, data)| ((None, *name), data.as_slice())))
}

/// The frame. Blobs named in `uploads` are taken from there by the server.
pub fn encode(change: &Change, uploads: &HashMap<Place, Upload>) -> Vec<u8> {
    let blob = |place: Place, data: &[u8], named: bool| {
        let upload = uploads.get(&place);
        Blob {
            name: named.then_some(place.1),
            length: data.len(),
            upload: upload.map(|upload| upload.id.as_str()),
            blake3: upload.map(|upload| Hex(upload.blake3)),
        }
    };
    let added = change.add.iter().map(|new| Added {
        id: Hex(new.id.0),
        rows: new.rows,
        blobs: new
            .blobs
            .iter()
            .map(|(name, data)| blob((Some(new.id), name), data, true))
            .collect(),
    });
    let attachments = change.attachments.iter();
    let content = Content {
        add: added.collect(),
        remove: change.remove.iter().map(|id| Hex(id.0)).collect(),
        delete_rows: gathered(
            change
                .delete_rows
                .iter()
                .chain(change.add.iter().map(|new| (&new.id, &new.deleted)))
                .filter(|(_, rows)| !rows.is_empty())
                .map(|(id, rows)| (id.to_string(), rows.as_slice())),
        ),
        attachments: attachments.map(|(name, data)| blob((None, name), data, true)).collect(),
        drop_attachments: [],
        meta: change.meta.as_ref().map(|meta| blob((None, ""), meta, false)),
    };
    let json = serde_json::to_vec(&content).unwrap_or_default();
    let mut frame =
        [MAGIC, &VERSION.to_le_bytes(), &(json.len() as u32).to_le_bytes(), &json].concat();
    for (_, data) in blobs(change).filter(|(place, _)| !uploads.contains_key(place)) {
        frame.extend_from_slice(data);
    }
    frame
}

/// The segments of a frame that only adds some, as a writer's batch does.
pub fn decode_added(data: &[u8]) -> Result<Vec<NewSegment>> {
    let fail = |why: &str| -> Result<Vec<NewSegment>> {
        Error::corrupt(format!(
            "these are not the bytes of a sealed batch ({why}); seal the rows again."
        ))
    };
    let Some(rest) = data.strip_prefix(MAGIC) else {
        return fail("they start with something else");
    };
    let Some((head, rest)) = rest.split_first_chunk::<8>() else { return fail("they end early") };
    let (version, length) = head.split_at(4);
    let word =
        |bytes: &[u8]| bytes.iter().rev().fold(0u32, |word, byte| word << 8 | u32::from(*byte));
    if word(version) > VERSION {
        return Err(Error::Version(format!(
            "the batch has format {}; this ciphervec reads up to {VERSION}. Upgrade it.",
            word(version)
        )));
    }
    let Some((json, mut blobs)) = rest.split_at_checked(word(length) as usize) else {
        return fail("they end early");
    };
    let content: Written = match json::read(json) {
        Ok(content) => content,
        Err(error) => return fail(&error.to_string()),
    };
    if !content.remove.is_empty()
        || !content.delete_rows.is_empty()
        || !content.attachments.is_empty()
        || content.meta.is_some()
    {
        return fail("they do more than add segments");
    }
    let mut added = Vec::with_capacity(content.add.len());
    for WrittenSegment { id, rows, blobs: named } in content.add {
        let mut parts = IndexMap::new();
        for WrittenBlob { name, length } in named {
            let known = [ROWS, SIDECAR, RECORDS, WRAP].into_iter().find(|known| *known == name);
            let Some(name) = known else { return fail(&format!("a segment has a blob {name:?}")) };
            let Some((blob, rest)) = blobs.split_at_checked(length) else {
                return fail("they end early");
            };
            parts.insert(name, blob.into());
            blobs = rest;
        }
        added.push(NewSegment { id: SegmentId(id.0), rows, blobs: parts, deleted: Vec::new() });
    }
    if blobs.is_empty() {
        Ok(added)
    } else {
        fail(&format!("{} bytes more than they name", blobs.len()))
    }
}

#[derive(Deserialize)]
struct WrittenBlob {
    name: String,
    length: usize,
}

#[derive(Deserialize)]
struct WrittenSegment {
    id: Hex<16>,
    rows: u32,
    blobs: Vec<WrittenBlob>,
}

/// A frame as it is read again.
#[derive(Deserialize)]
struct Written {
    add: Vec<WrittenSegment>,
    #[serde(default)]
    remove: Vec<Hex<16>>,
    #[serde(default)]
    delete_rows: BTreeMap<String, Vec<u32>>,
    #[serde(default)]
    attachments: Vec<WrittenBlob>,
    meta: Option<serde_json::Value>,
}

/// The blobs in an answer about several, each behind its length; none for one that is not there. What is cut short ends the list.
pub fn split_blobs(mut data: &[u8]) -> Vec<Option<&[u8]>> {
    let mut found = Vec::new();
    while let Some((length, rest)) = data.split_first_chunk::<8>() {
        let length = u64::from_le_bytes(*length);
        data = rest;
        if length == u64::MAX {
            found.push(None);
            continue;
        }
        let Some(blob) = usize::try_from(length).ok().and_then(|length| data.get(..length)) else {
            break;
        };
        found.push(Some(blob));
        data = &data[blob.len()..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_names_its_blobs_in_their_order_and_leaves_out_what_was_uploaded() {
        let id = SegmentId([0xab; 16]);
        let blobs = IndexMap::from([
            ("rows", b"ROWS".as_slice().into()),
            ("sidecar", b"SIDE".as_slice().into()),
        ]);
        let change = Change {
            add: vec![NewSegment { id, rows: 3, blobs, deleted: Vec::new() }],
            delete_rows: BTreeMap::from([(SegmentId([1; 16]), vec![2, 5])]),
            meta: Some(b"META".to_vec()),
            attachments: BTreeMap::from([("state", b"STATE".to_vec())]),
            ..Change::default()
        };
        let upload = Upload { id: "0".repeat(32), blake3: [7; 32] };
        let frame = encode(&change, &HashMap::from([((Some(id), "rows"), upload)]));
        let length = u32::from_le_bytes(*frame[12..].first_chunk().unwrap()) as usize;
        assert_eq!(&frame[..8], MAGIC);
        assert_eq!(&frame[16 + length..], b"SIDEMETASTATE");
        let content: serde_json::Value = json::read(&frame[16..16 + length]).unwrap();
        assert_eq!(content["add"][0]["id"], "ab".repeat(16));
        assert_eq!(content["add"][0]["blobs"][0]["upload"], "0".repeat(32));
        assert_eq!(content["delete_rows"]["01".repeat(16)], serde_json::json!([2, 5]));
        assert_eq!(content["meta"], serde_json::json!({"length": 4}));
    }

    #[test]
    fn a_batch_is_read_back_and_nothing_else_is() {
        let blobs =
            IndexMap::from([(ROWS, b"ROWS".as_slice().into()), (WRAP, b"WRAP".as_slice().into())]);
        let change = Change {
            add: vec![NewSegment { id: SegmentId([3; 16]), rows: 2, blobs, deleted: Vec::new() }],
            ..Change::default()
        };
        let batch = encode(&change, &HashMap::new());
        let read = decode_added(&batch).unwrap();
        assert_eq!((read[0].id, read[0].rows), (SegmentId([3; 16]), 2));
        assert_eq!(&*read[0].blobs[WRAP], b"WRAP");
        for end in 0..batch.len() {
            assert!(decode_added(&batch[..end]).is_err());
        }
        assert!(decode_added(&[batch.as_slice(), b"x"].concat()).is_err());
        let more = Change { meta: Some(vec![1]), ..change };
        assert!(decode_added(&encode(&more, &HashMap::new())).is_err());
    }

    #[test]
    fn blobs_are_split_as_far_as_they_came() {
        let mut data = 3u64.to_le_bytes().to_vec();
        data.extend(b"one");
        data.extend(u64::MAX.to_le_bytes());
        data.extend(0u64.to_le_bytes());
        assert_eq!(split_blobs(&data), [Some(b"one".as_slice()), None, Some(b"".as_slice())]);
        data.extend(9u64.to_le_bytes());
        data.extend(b"short");
        assert_eq!(split_blobs(&data).len(), 3);
        for end in 0..data.len() {
            assert!(split_blobs(&data[..end]).len() <= 3);
        }
    }
}
