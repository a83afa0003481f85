//! Answers in few bytes: within their bound for tables and indices that are hard on it, and refused
//! where they do not fit. In small rings that nothing vouches for.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::lookup::spec::Instance;
use crate::{Error, Result};
use ciphervec_he_secret::keys::MasterKey;
use ciphervec_he_secret::wire::{self, Header, Kind};

const LOG_DEGREE: u32 = 11;
/// The version of an answer.
const VERSION: u16 = 2;

fn recipe(strategy: Strategy, transport: Transport, shape: Shape) -> Result<Recipe> {
    match transport {
        Transport::Standard => Recipe::insecure_new(strategy, shape, LOG_DEGREE),
        Transport::Compact => Recipe::insecure_compact(strategy, shape, LOG_DEGREE),
    }
}

/// Both halves of a lookup in `values`, one table or more.
fn halves(
    (strategy, transport, precision_bits): (Strategy, Transport, u32),
    values: &[f64],
    sizes: (usize, usize, usize),
) -> (Server, Client) {
    let pooling = Pooling::None;
    let options = Options { strategy, transport, pooling, precision_bits, ..Options::default() };
    let shape = Shape { rows: sizes.1, columns: sizes.2, precision_bits, levels: 0 };
    let instance = || Instance::Tokens(recipe(strategy, transport, shape).unwrap());
    let table = Table::new(values, sizes).unwrap();
    let spec = Spec::of(&table, options, &instance()).unwrap();
    let server = Server::of(table, spec.clone(), instance()).unwrap();
    let client = Client::of(spec, MasterKey::generate().unwrap(), instance());
    if let Some(keys) = client.keys().unwrap() {
        server.register(&keys).unwrap();
    }
    (server, client)
}

/// Bytes of the answer but for the client's own memo, which comes back as it went, and the numbers.
fn ask(server: &Server, client: &Client, indices: &[i64]) -> (usize, Vec<f64>) {
    let tables = server.spec().tables();
    let ends: Vec<usize> = (0..=indices.len() / tables).collect();
    let query = client.query(&Documents::new(indices, tables, &ends).unwrap()).unwrap();
    let answer = server.answer(&query).unwrap();
    let (_, _, payload) = wire::open_version(Kind::Response, VERSION, &answer).unwrap();
    (answer.len() - memo_len(payload), client.decode(&answer).unwrap())
}

/// Of an answer's payload, which has it behind two ids.
fn memo_len(payload: &[u8]) -> usize {
    u32::from_le_bytes(*payload[32..].first_chunk().unwrap()) as usize
}

/// The largest error of any number.
fn worst(server: &Server, indices: &[i64], found: &[f64]) -> f64 {
    let (tables, columns) = (server.spec().tables(), server.spec().columns());
    let row = |token: &[i64], column: usize| -> f64 {
        let each = token.iter().enumerate();
        each.map(|(table, &index)| server.table().row(table, index as usize)[column]).sum()
    };
    let tokens = indices.chunks_exact(tables).zip(found.chunks_exact(columns));
    tokens
        .flat_map(|(token, found)| {
            (0..columns).map(move |column| (found[column] - row(token, column)).abs())
        })
        .fold(0.0, f64::max)
}

/// Numbers between −1 and 1.
fn number(k: usize) -> f64 {
    ((k * 2_654_435_761 + 12_345) % 4096) as f64 / 2048.0 - 1.0
}

/// Tables that are hard on a bound, by name.
fn hard(sizes: (usize, usize, usize)) -> Vec<(&'static str, Vec<f64>)> {
    let (tables, rows, columns) = sizes;
    let of = |value: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
        let place = |k: usize| (k / columns % rows, k % columns);
        (0..tables * rows * columns)
            .map(|k| {
                let (row, column) = place(k);
                value(row, column) * (1.0 + 1e-3 * number(k))
            })
            .collect()
    };
    vec![
        ("even", of(&|row, column| number(row * columns + column))),
        (
            "one column",
            of(&|row, column| if column == 1 { 1e4 * number(row) } else { number(row) }),
        ),
        (
            "one number",
            of(&|row, column| if (row, column) == (rows - 1, 0) { 1e3 } else { number(row) }),
        ),
        ("constant", of(&|_, _| 7.0)),
        ("alternating", of(&|row, _| if row % 2 == 0 { 1.0 } else { -1.0 })),
        ("smooth", of(&|row, column| (row as f64 / rows as f64 + column as f64).sin())),
        ("tiny", of(&|row, column| 1e-12 * number(row + column))),
        ("zeros", of(&|_, _| 0.0)),
    ]
}

/// Indices that make coefficients as large as they get, slots as alike, or neither; and a few, in a
/// batch that has room for many.
fn inputs(sizes: (usize, usize, usize), tokens: usize) -> [Vec<i64>; 4] {
    let (tables, rows, _) = sizes;
    let of = |index: &dyn Fn(usize) -> usize| -> Vec<i64> {
        (0..tokens * tables).map(|at| (index(at / tables) % rows) as i64).collect()
    };
    [
        of(&|_| rows - 1),
        of(&|token| if token < tokens / 2 { 0 } else { rows - 1 }),
        of(&|token| token * 7),
        vec![(rows - 1) as i64; 3 * tables],
    ]
}

#[test]
fn bounds_hold_for_hard_tables_and_correlated_indices() {
    for (strategy, transport, sizes) in [
        (Strategy::IveDigits, Transport::Standard, (2, 36, 3)),
        (Strategy::Ive, Transport::Standard, (2, 36, 5)),
        (Strategy::OneHot, Transport::Standard, (2, 6, 40)),
        (Strategy::OneHotDigits, Transport::Standard, (1, 30, 3)),
        (Strategy::IveDigits, Transport::Compact, (1, 16, 3)),
    ] {
        for precision_bits in [4, 14] {
            for (name, values) in hard(sizes) {
                let kind = (strategy, transport, precision_bits);
                let (server, client) = halves(kind, &values, sizes);
                let tokens = server.recipe().unwrap().batch();
                let what = format!("{strategy} {transport} {name}, {precision_bits} bits");
                for indices in inputs(sizes, tokens) {
                    let (length, found) = ask(&server, &client, &indices);
                    let bound = server.spec().error_bound();
                    let off = worst(&server, &indices, &found);
                    assert!(off <= bound, "{what}: {off:e} over {bound:e}");
                    if name == "even" {
                        let planned = server.recipe().unwrap().answer_bytes() as f64;
                        let ratio = length as f64 / planned;
                        assert!(
                            (0.8..1.2).contains(&ratio),
                            "{what}: {length} B, {planned} planned"
                        );
                    }
                }
            }
        }
    }
}

/// Roundings are what an answer is off by where they are coarse, so that a bound says something, and
/// each bit of precision is a bit less of every part.
#[test]
fn bits_follow_the_precision() {
    let sizes = (1, 16, 4);
    let (_, values) = hard(sizes).swap_remove(0);
    let mut bytes = Vec::new();
    for precision_bits in [9, 12, 15] {
        let (server, client) =
            halves((Strategy::OneHot, Transport::Standard, precision_bits), &values, sizes);
        let indices = &inputs(sizes, server.recipe().unwrap().batch())[2];
        let (length, found) = ask(&server, &client, indices);
        let off = worst(&server, indices, &found);
        let spec = server.spec();
        assert!(off <= spec.error_bound() && off > 0.05 * spec.rounding(), "{off:e}");
        bytes.push(length);
    }
    // Four columns of 2^11 coefficients, 3 bits more in both parts, and a bit more or less in either.
    for pair in bytes.windows(2) {
        let bits = (pair[1] - pair[0]) as f64 * 8.0 / (4 << LOG_DEGREE) as f64;
        assert!((5.0..=7.0).contains(&bits), "{bits}");
    }
}

#[test]
fn answers_that_do_not_fit_are_refused() {
    let sizes = (1, 8, 3);
    let (_, values) = hard(sizes).swap_remove(0);
    let (server, client) = halves((Strategy::OneHot, Transport::Standard, 12), &values, sizes);
    let query = client.query(&Documents::new(&[1, 2], 1, &[0, 1, 2]).unwrap()).unwrap();
    let answer = server.answer(&query).unwrap();
    let (version, header, payload) = wire::open_version(Kind::Response, VERSION, &answer).unwrap();
    assert_eq!(version, VERSION);
    let read = |header: Header, version: u16, payload: &[u8]| {
        let mut frame = vec![0; wire::HEADER_LEN];
        frame.extend_from_slice(payload);
        header.seal_version(version, &mut frame);
        client.decode(&frame)
    };
    assert!(read(header, version, payload).is_ok());
    let refused = |payload: &[u8]| read(header, version, payload).unwrap_err().to_string();
    // Of the first column, after ids, memo and batches.
    let scale = 32 + 4 + memo_len(payload) + 4;
    let changed = |at: usize, bytes: &[u8]| {
        let mut payload = payload.to_vec();
        payload[at..at + bytes.len()].copy_from_slice(bytes);
        payload
    };
    let is = f64::from_le_bytes(*payload[scale..].first_chunk().unwrap());
    for wrong in [is / 64.0, 0.0, -is] {
        assert!(refused(&changed(scale, &wrong.to_le_bytes())).contains("rounded by"), "{wrong}");
    }
    for wrong in [f64::NAN, f64::INFINITY, f64::MIN_POSITIVE] {
        refused(&changed(scale, &wrong.to_le_bytes()));
    }
    for part in [scale + 8, scale + 9] {
        let bits = payload[part];
        for wrong in [0, bits - 5, bits + 1, 51, 255] {
            refused(&changed(part, &[wrong]));
        }
    }
    for batches in [0u32, 2, u32::MAX] {
        refused(&changed(scale - 4, &batches.to_le_bytes()));
    }
    for end in (0..scale + 12).chain([payload.len() - 1]) {
        refused(&payload[..end]);
    }
    refused(&[payload, &[0]].concat());
    // As a server of an earlier release has it.
    let older = read(header, 1, payload).unwrap_err().to_string();
    assert!(older.contains("version 2 expected"), "{older}");
    assert!(read(header, 3, payload).is_err());
}

/// A description says how far answers are rounded, or is of a release whose answers were whole: then
/// as little is rounded as its bound has room for.
#[test]
fn descriptions_of_earlier_releases_keep_their_promise() {
    let table = Table::new(&[1.0, -2.5, 0.5, 4.0, -3.0, 0.25], (1, 3, 2)).unwrap();
    let options = Options {
        strategy: Strategy::OneHot,
        pooling: Pooling::None,
        precision_bits: 8,
        ..Options::default()
    };
    let now = Server::new(table.clone(), options).unwrap();
    let earlier = now.spec().clone().insecure_promise(None, 2e-4);
    let read = Spec::from_bytes(&earlier.to_bytes()).unwrap();
    assert_eq!(read, earlier);
    assert_eq!(Spec::from_bytes(&now.spec().to_bytes()).unwrap(), *now.spec());
    let instance = Instance::new(&options, (1, 3, 2)).unwrap();
    let server = Server::of(table, earlier.clone(), instance).unwrap();
    let server = Server::from_bytes(&server.to_bytes()).unwrap();
    assert_eq!(server.spec(), &earlier);
    let client = Client::generate(earlier).unwrap();
    let (length, found) = ask(&server, &client, &[2, 0, 1]);
    assert!(worst(&server, &[2, 0, 1], &found) <= 2e-4);
    let other = Client::generate(now.spec().clone()).unwrap();
    let (fewer, found) = ask(&now, &other, &[2, 0, 1]);
    assert!(fewer < length && worst(&now, &[2, 0, 1], &found) <= now.spec().error_bound());
    // Rounded by more than the bound allows.
    let over = now.spec().clone().insecure_promise(Some(1.0), 0.5);
    assert!(Spec::from_bytes(&over.to_bytes()).is_err());
    // A promise that no modulus holds.
    let bound = now.spec().error_bound();
    let finer = now.spec().clone().insecure_promise(Some(1e-15), bound);
    let (table, instance) = (now.table().clone(), Instance::new(&options, (1, 3, 2)).unwrap());
    let server = Server::of(table, finer.clone(), instance).unwrap();
    let client = Client::generate(finer).unwrap();
    let query = client.query(&Documents::new(&[1], 1, &[0, 1]).unwrap()).unwrap();
    assert!(matches!(server.answer(&query), Err(Error::Scheme(_))));
}
