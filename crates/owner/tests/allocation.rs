//! What decoders, programs and streams may allocate. Any decoder of hostile bytes: at most twice as many bytes as it was given,
//! and 1 MiB. The server of a program: no more than was forecast. Opening an answer as it comes: no more for more rows.
//! Bootstrapping keys, written and read piece by piece: their memory, and half of their frame at most beside it.
//!
//! One test in a binary of its own: the allocator counts the whole process.

#[allow(dead_code, reason = "shared with the suite")]
#[path = "suite/support/mod.rs"]
mod support;

use ciphervec_he_secret::ckks::{Polynomial, Sign};
use ciphervec_owner::program::{
    Asked, Block, Circuit, Client, Footprint, Plan, Server, Step, Trial, candidates,
};
use ciphervec_owner::protect::filter::FilterTags;
use ciphervec_owner::protect::sidecar::Sidecar;
use ciphervec_owner::search::{
    OpenOptions, Opened, Owner, Query, QueryOptions, Retrieval, Runner, SegmentDirectory,
    ServerIndex, Sink,
};
use ciphervec_owner::store::Manifest;
use ciphervec_owner::{Id, IndexSpec, Keys, Metric, Mode, Precision};
use peak_alloc::PeakAlloc;
use std::error::Error;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use support::decoders::{CKKS, program};
use support::samples;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The most that was allocated at once while `parse` ran, beyond what was there before.
fn peak<T>(parse: impl FnOnce() -> T) -> (usize, T) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let parsed = parse();
    (ALLOCATOR.peak_usage().saturating_sub(before), parsed)
}

/// A sidecar whose every row has the shortest id that is not a number.
fn dense_sidecar(rows: u32) -> Vec<u8> {
    let mut bytes = rows.to_le_bytes().to_vec();
    bytes.extend([0, 0, 0, 0]);
    (0..rows).for_each(|_| bytes.extend([1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]));
    (0..rows).for_each(|_| bytes.push(b'x'));
    bytes
}

/// A manifest of the shortest segments: one blob with a name of one character, no deleted row.
fn dense_manifest(segments: u32) -> Vec<u8> {
    let mut body = 9u64.to_le_bytes().to_vec();
    body.extend([0; 32 + 4 + 4]);
    body.extend(segments.to_le_bytes());
    for number in 0..segments {
        let mut id = [0; 16];
        id[..4].copy_from_slice(&number.to_be_bytes());
        body.extend(id);
        body.extend(u32::MAX.to_le_bytes());
        body.extend([0; 8 + 4]);
        body.extend(1u32.to_le_bytes());
        body.extend(1u32.to_le_bytes());
        body.push(b'a');
        body.extend([0; 40]);
    }
    let mut bytes = b"CVMANIFS".to_vec();
    bytes.extend(1u32.to_le_bytes());
    bytes.extend((body.len() as u64).to_le_bytes());
    bytes.extend(body);
    let checksum = blake3::hash(&bytes);
    bytes.extend(checksum.as_bytes());
    bytes
}

fn dense_filter_tags(rows: u32) -> Vec<u8> {
    let mut bytes = b"CVFILTER".to_vec();
    bytes.extend(1u32.to_le_bytes());
    bytes.extend(rows.to_le_bytes());
    (1..=rows).for_each(|end| bytes.extend(end.to_le_bytes()));
    (0..rows).for_each(|_| bytes.extend([7; 16]));
    bytes
}

/// A plan of steps, and of elements that stand one by one.
fn dense_plan(steps: usize, blocks: u64) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut circuit = program::square();
    circuit.steps.extend((0..steps).map(|_| Step::Negate(0)));
    let block = |place| Block { element: 0, place: place % 8, loops: vec![] };
    circuit.inputs[0].views[0].placement.blocks.extend((0..blocks).map(block));
    Ok(Plan::new(circuit, program::params()?, program::key_sets())?.to_bytes())
}

#[test]
fn decoders_and_programs_allocate_no_more_than_is_known_before() -> Result<(), Box<dyn Error>> {
    let bound = |bytes: &[u8]| 2 * bytes.len() + (1 << 20);
    let bytes = dense_sidecar(500_000);
    let (used, parsed) = peak(|| Sidecar::from_plain_bytes(&bytes));
    assert_eq!(parsed?.rows, 500_000);
    assert!(used <= bound(&bytes), "sidecar: {used} for {}", bytes.len());

    let bytes = dense_manifest(100_000);
    let (used, parsed) = peak(|| Manifest::from_bytes(&bytes));
    assert_eq!(parsed?.segments.len(), 100_000);
    assert!(used <= bound(&bytes), "manifest: {used} for {}", bytes.len());

    let bytes = dense_filter_tags(500_000);
    let (used, parsed) = peak(|| FilterTags::from_bytes(&bytes));
    assert_eq!(parsed?.rows(), 500_000);
    assert!(used <= bound(&bytes), "filter tags: {used} for {}", bytes.len());

    let bytes = dense_plan(200_000, 60_000)?;
    let (used, parsed) = peak(|| Plan::from_bytes(&bytes));
    assert_eq!(parsed?.circuit().steps.len(), 200_002);
    assert!(used <= bound(&bytes), "plan: {used} for {}", bytes.len());

    // Declared lengths alone, without bytes behind them, cost nothing.
    for sample in samples::small()? {
        for at in 0..sample.bytes.len().saturating_sub(8) {
            let mut bytes = sample.bytes.clone();
            bytes[at..at + 4].fill(0xff);
            sample.checksum.fit(&mut bytes);
            let (used, _) = peak(|| (sample.decode)(&bytes));
            assert!(used <= bound(&bytes), "{}: {used} at {at}", sample.name);
        }
    }
    footprints()?;
    streamed_keys()?;
    streamed_answers()
}

/// Bootstrapping keys that come and go piece by piece are in memory once: beside them lies a key, of
/// which their frame has five.
fn streamed_keys() -> Result<(), Box<dyn Error>> {
    let bytes = CKKS.bootstrapping_keys.as_slice();
    let piece = bytes.len() / 2;
    // What is kept for reuse is made once.
    let keys = CKKS.stream_bootstrapping_keys(&mut { bytes })?;
    let (used, written) = peak(|| keys.write_to(&mut io::sink()));
    written?;
    assert!(used <= piece, "writing: {used} for {} bytes", bytes.len());
    let (used, read) = peak(|| CKKS.stream_bootstrapping_keys(&mut { bytes }));
    let memory = read?.memory();
    assert!(used <= memory + piece, "reading: {used} for {memory} in memory");
    Ok(())
}

/// Rows of the largest index that is opened here; `CIPHERVEC_STREAMED_ROWS` asks for another.
const STREAMED_ROWS: usize = 2_500_000;

/// An answer that is opened as it comes takes no more for twice as many rows, and never much.
fn streamed_answers() -> Result<(), Box<dyn Error>> {
    let largest = std::env::var("CIPHERVEC_STREAMED_ROWS").ok();
    let largest = largest.map_or(Ok(STREAMED_ROWS), |rows| rows.parse())?;
    let keys = Keys::generate()?;
    let spec = IndexSpec::new("s", 1, Metric::Cosine, Mode::Sealed, Precision::Standard)?;
    let owner = Owner::new(&keys, spec.clone())?;
    let mut server = ServerIndex::new(spec)?;
    server.set_evaluation_keys(&owner.evaluation(0)?.ok_or("no keys")?.to_bytes())?;
    let mut directory = SegmentDirectory::new();
    let (mut rows, mut peaks, mut both) = (0, Vec::new(), Vec::new());
    for wanted in [largest / 2, largest] {
        while rows < wanted {
            let count = 65_536.min(wanted - rows);
            let ids: Vec<Id> = (rows..rows + count).map(|row| Id::Number(row as i64)).collect();
            let values: Vec<f32> =
                ids.iter().map(|id| if *id == Id::Number(3) { 1.0 } else { -1.0 }).collect();
            let sealed = owner.seal(&values, &ids)?;
            directory.add(&owner, sealed.id, &sealed.sidecar, &[])?;
            server.add(sealed.segment)?;
            rows += count;
        }
        let query = owner.query(&[1.0], &directory, QueryOptions::default())?;
        let answer = server.evaluate(query.to_bytes())?.bytes;
        for retrieval in [Retrieval::TopK(10), Retrieval::Range(0.5)] {
            let wanted = OpenOptions { retrieval, selection: None, newer: &[], flood: None };
            let mut bytes = &answer[..];
            let snapshot = directory.snapshot();
            let run: Runner<'_> = &|work| work();
            let (used, opened) =
                peak(|| owner.open_stream(&query, &mut bytes, &snapshot, &wanted, run));
            let hits = &opened?.hits[0];
            assert_eq!(hits[0].id, Id::Number(3));
            assert_eq!(hits.len(), if retrieval == Retrieval::Range(0.5) { 1 } else { 10 });
            println!("{rows} rows, {} bytes of answer: {used} bytes to open it", answer.len());
            peaks.push(used);
        }
        // The same from a server in this process, which holds the query's tree and the piece that it is at.
        let wanted = OpenOptions {
            retrieval: Retrieval::TopK(10),
            selection: None,
            newer: &[],
            flood: None,
        };
        let bytes = answer.len();
        drop(answer);
        let (used, opened) = peak(|| in_one_process(&owner, &server, &query, &directory, &wanted));
        assert_eq!(opened?.hits[0][0].id, Id::Number(3));
        println!("{rows} rows, {bytes} bytes of answer: {used} bytes to make and open it");
        both.push(used);
    }
    assert!(peaks.iter().all(|&used| used < 32 << 20), "{peaks:?}");
    assert!(peaks[2..].iter().all(|&used| used < peaks[0] + (1 << 20)), "{peaks:?}");
    assert!(both[1] < 64 << 20 && both[1] < both[0] + (2 << 20), "{both:?}");
    Ok(())
}

/// An answer that is opened while it is computed, on another thread.
fn in_one_process(
    owner: &Owner,
    server: &ServerIndex,
    query: &Query,
    directory: &SegmentDirectory,
    wanted: &OpenOptions<'_>,
) -> ciphervec_owner::Result<Opened> {
    let here: Runner<'_> = &|work| work();
    let snapshot = directory.snapshot();
    let (write, read) = sync_channel(1);
    thread::scope(|scope| {
        let opening = scope.spawn(|| {
            let mut pieces = Pieces { come: read, piece: Vec::new(), read: 0 };
            owner.open_local(query, &mut pieces, &snapshot, wanted, here)
        });
        let mut write_piece = |piece: &[u8]| write.send(piece.to_vec()).is_ok();
        server.evaluate_into(
            query.to_bytes(),
            None,
            &mut Sink { run: here, write: &mut write_piece },
        )?;
        drop(write);
        opening.join().expect("the opening thread panicked")
    })
}

/// Pieces as they come, as one stream.
struct Pieces {
    come: Receiver<Vec<u8>>,
    piece: Vec<u8>,
    read: usize,
}

impl Read for Pieces {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.read == self.piece.len() {
            let Ok(piece) = self.come.recv() else { return Ok(0) };
            (self.piece, self.read) = (piece, 0);
        }
        let count = out.len().min(self.piece.len() - self.read);
        out[..count].copy_from_slice(&self.piece[self.read..][..count]);
        self.read += count;
        Ok(count)
    }
}

/// Programs whose memory goes to different things.
fn demanding() -> Result<Vec<(&'static str, Circuit)>, Box<dyn Error>> {
    // x in [0, 15/16], in register 0; what comes of each lies in the last one.
    let of = |steps: Vec<Step>| {
        let mut circuit = program::square();
        circuit.outputs[0].registers = vec![steps.len() as u32];
        circuit.outputs[0].numbers =
            ciphervec_owner::program::Numbers { step: 0.0, low: -1e3, high: 1e3 };
        circuit.outputs[0].unit = 1.0;
        circuit.steps = steps;
        circuit
    };
    // Many results of which all are read at the end, so that all are held.
    let mut held: Vec<Step> = (0..60).map(|_| Step::MultiplyNumber(0, 0.5)).collect();
    held.push(Step::Add(1, 2));
    held.extend((3..=60).map(|register| Step::Add(register + 58, register)));
    // Rotations of one register, of which nobody reads any.
    let mut rotated = vec![Step::Rotate(0, 3); 100];
    rotated.push(Step::Square(0));
    let mut wide = of(vec![Step::Polynomial(0, 0)]);
    let coefficients: Vec<f64> = (0..=119).map(|k| 1.0 / f64::from(k * k + 1)).collect();
    wide.polynomials = vec![Polynomial::chebyshev(-1.0, 1.0, &coefficients)?];
    let mut sign = of(vec![Step::Sign(0, 0)]);
    sign.signs = vec![Sign::new(1.0 / 256.0, 10.0)?];
    Ok(vec![("held", of(held)), ("rotated", of(rotated)), ("wide", wide), ("sign", sign)])
}

fn footprints() -> Result<(), Box<dyn Error>> {
    for (name, circuit) in demanding()? {
        let tried = candidates(&circuit, &Asked::of(&[1e-2]))?.pop();
        let (spec, trial) = tried.ok_or("no ring")?.outcome?;
        let made = Plan::of(circuit, spec, trial.keys)?;
        let bytes = made.to_bytes();
        let client = Client::generate(Arc::new(made))?;
        let (keys, input) = (client.evaluation_keys()?, client.encrypt("x", &[1.0; 8])?);
        drop(client);
        let (_, plan) = peak(|| Plan::from_bytes(&bytes).map(Arc::new));
        let plan = plan?;
        let footprint = Footprint::of(&plan, &Trial::of(&plan)?)?;
        let (used, server) = peak(|| Server::new(plan.clone(), &keys));
        let (server, most) = (server?, footprint.keys as usize);
        let least = most / 3;
        let most = most + (64 << 10);
        assert!((least..=most).contains(&used), "{name}: {used} bytes of keys, {most} forecast");
        let input = server.read(&input)?;
        let (used, answer) = peak(|| server.run(&[input], |_| ()));
        assert!(!answer?.is_empty());
        // What the tables of the parameters keep for reuse is part of the plan's.
        let most = (footprint.run + footprint.plan) as usize;
        assert!((most / 50..=most).contains(&used), "{name}: {used} bytes, {most} forecast");
    }
    Ok(())
}
