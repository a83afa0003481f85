//! Cards and wrapped keys of every released version open forever: known answers under `vectors/v1/writers`, and with a time of
//! sealing under `vectors/v2/writers`.
//!
//! `CIPHERVEC_WRITE_VECTORS=1 cargo test -p ciphervec --test suite vectors_writers::` writes them where they are missing.

use ciphervec_arith::AlignedBytes;
use ciphervec_owner::protect::records::{Place, RecordBatch, open_row};
use ciphervec_owner::search::{
    Origin, Owner, QueryOptions, Retrieval, SegmentDirectory, ServerIndex, Writer, WriterCard,
};
use ciphervec_owner::{Id, IndexSpec, Keys, Metric, Mode, Precision};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

type Outcome = Result<(), Box<dyn Error>>;

const MASTER: [u8; 32] = *b"a published key protects nothing";
const TIME: u64 = 1_790_000_000_000;
const ROWS: [f32; 6] = [1.0, 2.0, -2.0, 0.5, -0.5, 0.25];

fn folder(version: &str) -> PathBuf {
    let vectors = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors"));
    vectors.join(version).join("writers")
}

fn owner() -> Result<Owner, Box<dyn Error>> {
    let spec = IndexSpec::new("doors", 3, Metric::L2, Mode::SealedIndex, Precision::Standard)?;
    Ok(Owner::new(&Keys::from_master(MASTER), spec)?)
}

fn card() -> Result<WriterCard, Box<dyn Error>> {
    Ok(owner()?.writer_card("door 3", &["colour".to_owned(), "größe".to_owned()])?)
}

fn write(folder: &Path) -> Outcome {
    fs::create_dir_all(folder)?;
    let payloads = vec![b"first".to_vec(), Vec::new()];
    let made =
        Writer::new(card()?)?.seal(&ROWS, &[Id::from("one"), Id::from(2)], payloads, 2, TIME)?;
    fs::write(folder.join("card"), card()?.to_bytes())?;
    fs::write(folder.join("wrap"), made.wrap)?;
    fs::write(folder.join("segment"), made.sealed.segment.as_slice())?;
    fs::write(folder.join("sidecar"), made.sealed.sidecar)?;
    fs::write(folder.join("records"), made.records.unwrap_or_default())?;
    Ok(())
}

/// Release 0.1 wrote no time.
#[test]
fn version_1_of_a_writers_segment_opens_as_it_did() -> Outcome {
    opens(&folder("v1"), 0)
}

#[test]
fn version_2_of_a_writers_segment_says_when_it_was_sealed() -> Outcome {
    opens(&folder("v2"), TIME)
}

fn opens(folder: &Path, time: u64) -> Outcome {
    if std::env::var_os("CIPHERVEC_WRITE_VECTORS").is_some() && !folder.exists() {
        write(folder)?;
    }
    let get = |name: &str| fs::read(folder.join(name));
    // Nothing in a card is drawn: the same owner writes the same one, today and in version 1.
    assert_eq!(card()?.to_bytes(), get("card")?);
    let read = WriterCard::from_bytes(&get("card")?)?;
    assert_eq!((read.writer(), read.filterable().len()), ("door 3", 2));
    assert_eq!(read.fingerprint(), FINGERPRINT);

    let owner = owner()?;
    let mut server = ServerIndex::new(owner.spec().clone())?;
    let id = server.add(AlignedBytes::from_slice(&get("segment")?))?;
    let mut directory = SegmentDirectory::new();
    let written = owner.written(id, &get("wrap")?)?;
    assert_eq!((written.writer.as_str(), written.time, written.segment), ("door 3", time, id.0));
    directory.add_written(&owner, id, &get("sidecar")?, &get("wrap")?, &[])?;
    assert_eq!(directory.origin(id), Some(&Origin::Writer("door 3".to_owned())));
    let query = owner.query(&ROWS[..3], &directory, QueryOptions::default())?;
    let answer = server.evaluate(query.to_bytes())?;
    let found = owner.open(&query, &answer.bytes, &directory, Retrieval::TopK(2))?;
    let hits: Vec<_> = found.hits.iter().flatten().map(|hit| (hit.id.clone(), hit.value)).collect();
    assert_eq!(hits.first().map(|hit| &hit.0), Some(&Id::from("one")));
    assert!(hits.first().is_some_and(|hit| hit.1.abs() < 1e-2));
    assert_eq!(hits.get(1).map(|hit| &hit.0), Some(&Id::from(2)));

    let records = get("records")?;
    let binding = owner.spec().binding();
    let place = Place { collection: &binding, segment: &id.0 };
    let root = directory.root(id).ok_or("the segment has a key of its own")?;
    let batch = RecordBatch::parse(&records)?;
    assert_eq!(*open_row(&batch, root.aead(), place, &Id::from("one"), 0)?, b"first");
    assert!(open_row(&batch, root.aead(), place, &Id::from(2), 1)?.is_empty());
    Ok(())
}

const FINGERPRINT: &str = "86420de4c7d4f8070ac117c4ce627238";
