//! Compact transport from indices to rows: bytes between two halves, in small rings that nothing
//! vouches for.

use super::*;
use crate::lookup::serialize::TRANSPORT_VERSION;
use crate::lookup::spec::Instance;
use crate::lookup::tokens::compact::CompactCost;
use crate::{Error, Result};
use ciphervec_he_secret::keys::MasterKey;
use ciphervec_he_secret::params::ParamId;
use ciphervec_he_secret::wire::{self, Header, KeyId, Kind, Scheme};

const LOG_DEGREE: u32 = 11;
/// Bytes that a query begins with: its description's id, and what is drawn for it.
const SPEC_ID: usize = 16;
const NONCE: usize = 16;

fn table((tables, rows, columns): (usize, usize, usize)) -> Result<Table> {
    let number = |k: usize| ((k * 2_654_435_761 + 12_345) % 4096) as f64 / 2048.0 - 1.0;
    let values: Vec<f64> = (0..tables * rows * columns).map(number).collect();
    Table::new(&values, (tables, rows, columns))
}

/// Both halves, which know each other by bytes alone.
fn halves(
    strategy: Strategy,
    pooling: Pooling,
    shape: (usize, usize, usize),
) -> Result<(Server, Client)> {
    let options = Options {
        strategy,
        pooling,
        transport: Transport::Compact,
        precision_bits: 10,
        limit: 8,
        ..Options::default()
    };
    let (_, rows, columns) = shape;
    let instance = || -> Result<Instance> {
        let shape = Shape { rows, columns, precision_bits: 10, levels: 0 };
        Ok(Instance::Tokens(Recipe::insecure_compact(strategy, shape, LOG_DEGREE)?))
    };
    let table = table(shape)?;
    let spec = Spec::of(&table, options, &instance()?)?;
    let server = Server::of(table, spec.clone(), instance()?)?;
    Ok((server, Client::of(spec, MasterKey::generate()?, instance()?)))
}

fn indices(tokens: usize, tables: usize, rows: usize) -> Vec<i64> {
    (0..tokens * tables).map(|at| ((at * 7919 + at / 3) % rows) as i64).collect()
}

#[test]
fn rows_come_back_from_few_bytes() {
    for (strategy, shape) in [
        (Strategy::Ive, (3, 30, 4)),
        (Strategy::Ive, (1, 8, 20)),
        (Strategy::IveDigits, (1, 64, 1)),
        (Strategy::IveDigits, (2, 16, 129)),
    ] {
        let (server, client) = halves(strategy, Pooling::None, shape).unwrap();
        server.register(&client.keys().unwrap().unwrap()).unwrap();
        let (tables, rows, columns) = shape;
        let recipe = server.recipe().unwrap();
        // More than a batch.
        let tokens = recipe.batch() + 37;
        let indices = indices(tokens, tables, rows);
        let ends: Vec<usize> = (0..=tokens).collect();
        let query = client.query(&Documents::new(&indices, tables, &ends).unwrap()).unwrap();
        let found = client.decode(&server.answer(&query).unwrap()).unwrap();
        assert_eq!(found.len(), tokens * columns);
        let mut square = 0.0;
        for (token, row) in found.chunks_exact(columns).enumerate() {
            for (column, found) in row.iter().enumerate() {
                let named = indices[token * tables..].iter().take(tables).enumerate();
                let terms = named.map(|(table, &index)| {
                    server.table().table(table)[index as usize * columns + column]
                });
                square += (found - terms.sum::<f64>()).powi(2);
            }
        }
        let error = (square / found.len() as f64).sqrt();
        let what = format!("{strategy} {shape:?}: {error:e}");
        assert!(error <= client.spec().error_bound() / 9.5, "{what}");
        assert!(error < f64::exp2(-9.0) * (tables as f64).sqrt(), "{what}");
        // Two batches, padding included, and what a seeded ciphertext of the standard way would be.
        let ring = recipe.batch() / 8 * recipe.entries() * tables;
        let bits = (query.len() - 300 - tokens / 8) as f64 / (2 * ring) as f64;
        assert!((10.0..26.0).contains(&bits), "{what}: {bits} bits a number");
    }
}

#[test]
fn documents_are_pooled_and_padded() {
    let (server, client) = halves(Strategy::Ive, Pooling::Mean, (2, 16, 3)).unwrap();
    server.register(&client.keys().unwrap().unwrap()).unwrap();
    let indices = [3, 4, PADDING, PADDING, 5, 15, 0, 0];
    let documents = Documents::new(&indices, 2, &[0, 2, 4]).unwrap();
    let means = client.decode(&server.answer(&client.query(&documents).unwrap()).unwrap()).unwrap();
    let row =
        |table: usize, index: usize, column: usize| server.table().table(table)[index * 3 + column];
    for column in 0..3 {
        let first = row(0, 3, column) + row(1, 4, column);
        let second = row(0, 5, column) + row(1, 15, column) + row(0, 0, column) + row(1, 0, column);
        assert!((means[column] - first).abs() < server.spec().error_bound());
        assert!((means[3 + column] - second / 2.0).abs() < server.spec().error_bound());
    }
}

/// Sizes and everything else that is not encrypted are the same whatever is asked for, and no two
/// queries share a word.
#[test]
fn queries_show_a_server_nothing_of_what_they_ask() {
    let (_, client) = halves(Strategy::Ive, Pooling::Sum, (2, 16, 1)).unwrap();
    let ask = |indices: &[i64]| {
        let ends = [0, indices.len() / 2];
        client.query(&Documents::new(indices, 2, &ends).unwrap()).unwrap()
    };
    let queries: Vec<Vec<u8>> = (0..12)
        .map(|at| if at % 2 == 0 { ask(&[0; 8]) } else { ask(&[15, 3, 1, 2, 3, 4, 5, 6]) })
        .collect();
    let lengths: Vec<usize> = queries.iter().map(Vec::len).collect();
    assert!(lengths.iter().all(|&length| length == lengths[0]));
    for (at, one) in queries.iter().enumerate() {
        for other in &queries[..at] {
            let (a, b) = (one[400..].chunks_exact(8), other[400..].chunks_exact(8));
            let alike = a.zip(b).filter(|(a, b)| a == b).count();
            assert!(alike < 3, "{alike} words are alike");
        }
    }
}

#[test]
fn what_does_not_belong_is_refused() {
    let shape = (2, 16, 1);
    let (server, client) = halves(Strategy::Ive, Pooling::None, shape).unwrap();
    let ends = [0, 1, 2];
    let asked =
        |client: &Client| client.query(&Documents::new(&[1, 2, 3, 4], 2, &ends).unwrap()).unwrap();
    let query = asked(&client);
    let refused = |server: &Server, query: &[u8]| server.answer(query).unwrap_err().to_string();
    assert!(refused(&server, &query).contains("register"));
    let keys = client.keys().unwrap().unwrap();
    let owner = server.register(&keys).unwrap();
    assert!(server.answer(&query).is_ok());
    for length in [0, 63, 64, 80, 100, 200, query.len() / 2, query.len() - 1] {
        assert!(server.answer(&query[..length]).is_err());
    }
    for at in (0..query.len()).step_by(query.len() / 97) {
        let mut damaged = query.clone();
        damaged[at] ^= 4;
        assert!(server.answer(&damaged).is_err(), "byte {at}");
    }
    for length in [0, 64, 72, 1000, keys.len() / 2, keys.len() - 1] {
        assert!(server.register(&keys[..length]).is_err());
    }
    // Another client's key, and another table's query.
    let (other, stranger) = halves(Strategy::Ive, Pooling::None, shape).unwrap();
    assert!(refused(&server, &asked(&stranger)).contains("register"));
    other.register(&stranger.keys().unwrap().unwrap()).unwrap();
    let answer = other.answer(&asked(&stranger)).unwrap();
    assert!(client.decode(&answer).is_err());
    let (_, elsewhere) = halves(Strategy::Ive, Pooling::Sum, shape).unwrap();
    assert!(refused(&server, &asked(&elsewhere)).contains("other settings"));
    // Keys that were never there, and keys that the server forgot.
    assert!(refused(&other, &query).contains(&format!("the keys of {owner} are not here")));
    assert!(!server.forget(KeyId::default()) && server.answer(&query).is_ok());
    assert!(server.forget(owner) && !server.forget(owner));
    assert!(refused(&server, &query).contains(&format!("the keys of {owner} are not here")));
}

/// Whoever sends a query can make its checksum right.
#[test]
fn queries_are_read_with_care() {
    let (server, client) = halves(Strategy::Ive, Pooling::None, (2, 8, 1)).unwrap();
    server.register(&client.keys().unwrap().unwrap()).unwrap();
    let documents = Documents::new(&[1, 2, 3, 4], 2, &[0, 1, 2]).unwrap();
    let query = client.query(&documents).unwrap();
    let (version, header, payload) =
        wire::open_version(Kind::Query, TRANSPORT_VERSION, &query).unwrap();
    let answer = |header: Header, payload: &[u8]| {
        let mut frame = vec![0; wire::HEADER_LEN];
        frame.extend_from_slice(payload);
        header.seal_version(version, &mut frame);
        server.answer(&frame)
    };
    assert!(answer(header, payload).is_ok());
    let refused = |payload: &[u8]| assert!(answer(header, payload).is_err());
    // Both parts with another length before them than they have.
    let length = |at: usize| u32::from_le_bytes(*payload[at..].first_chunk().unwrap());
    let memo = SPEC_ID + NONCE;
    let ciphertexts = memo + 4 + length(memo) as usize;
    for at in [memo, ciphertexts] {
        let is = length(at);
        for wrong in [0, is.wrapping_sub(1), is + 1, is ^ 1 << 20, u32::MAX] {
            let mut payload = payload.to_vec();
            payload[at..at + 4].copy_from_slice(&wrong.to_le_bytes());
            if wrong != is {
                refused(&payload);
            }
        }
    }
    for end in (0..ciphertexts + 4 + wire::HEADER_LEN).chain([payload.len() - 1]) {
        refused(&payload[..end]);
    }
    refused(&[payload, &[0]].concat());
    for at in 0..SPEC_ID {
        let mut payload = payload.to_vec();
        payload[at] ^= 1;
        refused(&payload);
    }
    for header in [
        Header { scheme: Scheme::Ring, ..header },
        Header { params: ParamId([0; 8]), ..header },
        Header { kind: Kind::Response, ..header },
    ] {
        assert!(answer(header, payload).is_err(), "{header:?}");
    }
    // The name in front is the client's own affair: it comes back, and only the client can tell.
    let renamed = answer(Header { key: KeyId::default(), ..header }, payload).unwrap();
    assert!(client.decode(&renamed).is_err());
}

/// Estimates are made before parameters are, from figures that these must have.
#[test]
fn sets_are_what_was_planned() {
    for (strategy, rows, log_degree) in [(Strategy::Ive, 256, 16), (Strategy::IveDigits, 256, 15)] {
        let shape = Shape { rows, columns: 50, precision_bits: 14, levels: 0 };
        let recipe = Recipe::compact(strategy, shape).unwrap();
        assert_eq!(recipe.params().degree(), 1 << log_degree);
        let cost = CompactCost::new(strategy, shape, 4).unwrap();
        let compact = recipe.compact_layout().unwrap();
        let plan = compact.exponential().plan().unwrap();
        let (levels, switches, rotations) = cost.planned;
        assert_eq!((levels, switches), (recipe.params().max_level(), plan.relinearisations));
        assert!(rotations.abs_diff(plan.rotations + 1) <= 3, "{} rotations", plan.rotations + 1);
        assert!(plan.failure_log2 < -128.0 && plan.precision_bits >= cost.root_bits);
        assert_eq!(cost.error, recipe.relative_error());
        let near = |planned: usize, actual: usize| {
            let ratio = planned as f64 / actual as f64;
            assert!((0.9..1.1).contains(&ratio), "{planned} planned, {actual} found");
        };
        near(cost.key_bytes, recipe.key_bytes().unwrap());
        near(cost.answer_bytes, recipe.answer_bytes());
        near(cost.query_bytes, recipe.query_bytes(4));
        // Twenty-two bits a coefficient for this precision, or nineteen for each of two digits.
        let bytes = cost.query_bytes as f64 / cost.batch as f64;
        assert!(bytes < 21.0, "{strategy}: {bytes}");
        assert_eq!((cost.batch, cost.depth), (recipe.batch(), recipe.depth()));
    }
}

/// What this process has taken of processors so far: with one thread that is its time, however busy
/// the machine is.
fn processor_seconds() -> f64 {
    let told = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // User and system time in hundredths of a second, the 14th and 15th fields.
    let fields = told.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// The study's tables, bytes in to rows out: what a token takes.
#[test]
#[ignore = "minutes, and gigabytes of keys"]
fn a_full_batch_of_the_study() {
    for strategy in [Strategy::Ive, Strategy::IveDigits] {
        let shape = (4, 256, 50);
        let options = Options {
            strategy,
            pooling: Pooling::None,
            transport: Transport::Compact,
            ..Options::default()
        };
        let server = Server::new(table(shape).unwrap(), options).unwrap();
        let client = Client::generate(server.spec().clone()).unwrap();
        let keys = client.keys().unwrap().unwrap();
        server.register(&keys).unwrap();
        let tokens = server.recipe().unwrap().batch();
        let ends: Vec<usize> = (0..=tokens).collect();
        let indices = indices(tokens, 4, 256);
        let query = client.query(&Documents::new(&indices, 4, &ends).unwrap()).unwrap();
        let began = processor_seconds();
        let made = server.make_functions(&query).unwrap();
        let between = processor_seconds();
        let answer = server.answer(&query).unwrap();
        let seconds = processor_seconds() - between;
        assert!(made > 0);
        let found = client.decode(&answer).unwrap();
        let (mut error, mut size) = (0.0, 0.0);
        for (token, row) in found.chunks_exact(50).enumerate() {
            for (column, found) in row.iter().enumerate() {
                let named = indices[token * 4..].iter().take(4).enumerate();
                let terms = named.map(|(table, &index)| {
                    server.table().table(table)[index as usize * 50 + column]
                });
                let expected: f64 = terms.sum();
                error += (found - expected).powi(2);
                size += expected.powi(2);
            }
        }
        let per = |bytes: usize| bytes as f64 / tokens as f64;
        println!(
            "{strategy}: {tokens} tokens, {:.3} ms of a processor a token, {:.3} for its functions, query {:.2} B, answer {:.0} B a token, keys \
             {:.0} MB, relative error 2^{:.2}",
            1e3 * seconds / tokens as f64,
            1e3 * (between - began) / tokens as f64,
            per(query.len()),
            per(answer.len()),
            keys.len() as f64 / 1e6,
            (error / size).sqrt().log2(),
        );
    }
}

#[test]
fn other_strategies_go_the_standard_way() {
    for strategy in [Strategy::OneHot, Strategy::Indicator, Strategy::Histogram] {
        let pooling = Pooling::Sum;
        let options =
            Options { strategy, pooling, transport: Transport::Compact, ..Options::default() };
        let error = Server::new(table((1, 4, 1)).unwrap(), options).unwrap_err();
        assert!(matches!(error, Error::Lookup { .. }), "{error}");
        assert!(error.to_string().contains("ive or ive_digits"));
    }
}
