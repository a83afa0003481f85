//! Private lookup end to end, against sums of the plain rows.
#![cfg(feature = "client")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use ciphervec::lookup::{Client, Documents, Options, PADDING, Pooling, Server, Spec, Table};
use ciphervec_arith::sample::Stream;

/// Pseudorandom integers below `most`.
fn below(seed: u8, count: usize, most: u64) -> Vec<usize> {
    let mut words = vec![0; count];
    Stream::new(&[seed; 32], 0).uniform_bits(40, &mut words);
    words.into_iter().map(|word| (word % most) as usize).collect()
}

/// Pseudorandom numbers in ±1, of a few rows larger.
fn numbers(seed: u8, count: usize) -> Vec<f64> {
    let unit = |value| value as f64 / 5e5 - 1.0;
    below(seed, count, 1_000_001).into_iter().map(unit).collect()
}

fn table(shape: (usize, usize, usize)) -> Table {
    Table::new(&numbers(1, shape.0 * shape.1 * shape.2), shape).unwrap()
}

/// Indices of documents of these lengths, some of them padding.
fn documents(table: &Table, lengths: &[usize]) -> (Vec<i64>, Vec<usize>) {
    let tokens: usize = lengths.iter().sum();
    let rows = below(2, tokens * table.tables(), table.rows() as u64);
    let mut indices: Vec<i64> = rows.into_iter().map(|row| row as i64).collect();
    for token in (5..tokens).step_by(7) {
        indices[token * table.tables()..][..table.tables()].fill(PADDING);
    }
    let ends = lengths.iter().scan(0, |sum, length| {
        *sum += length;
        Some(*sum)
    });
    (indices, std::iter::once(0).chain(ends).collect())
}

fn exact(table: &Table, indices: &[i64], offsets: &[usize], pooling: Pooling) -> Vec<f64> {
    let pooled = |pair: &[usize]| {
        let mut sum = vec![0.0; table.columns()];
        for token in pair[0]..pair[1] {
            for (one, index) in
                indices[token * table.tables()..][..table.tables()].iter().enumerate()
            {
                if *index != PADDING {
                    let row = table.row(one, *index as usize);
                    sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
                }
            }
        }
        let length = if pooling == Pooling::Mean { (pair[1] - pair[0]).max(1) } else { 1 };
        sum.into_iter().map(|value| value / length as f64).collect::<Vec<_>>()
    };
    offsets.windows(2).flat_map(pooled).collect()
}

#[test]
fn sums_and_means_stay_within_the_stated_bound() {
    for (shape, lengths) in [
        ((4, 256, 1), &[128, 0, 1, 17, 90][..]),
        ((1, 3, 2), &[2, 2]),
        ((4, 1024, 3), &[60, 128]),
        ((2, 100, 40), &[5; 70]),
    ] {
        for pooling in [Pooling::Sum, Pooling::Mean] {
            for word_bytes in 4..=6 {
                let options = Options { pooling, limit: 128, word_bytes };
                let table = table(shape);
                let server = Server::new(table.clone(), options).unwrap();
                let spec = Spec::from_bytes(&server.spec().to_bytes()).unwrap();
                assert_eq!(&spec, server.spec());
                let client = Client::generate(spec).unwrap();
                let (indices, offsets) = documents(&table, lengths);
                let documents = Documents::new(&indices, shape.0, &offsets).unwrap();
                let expected = exact(&table, &indices, &offsets, pooling);
                let mut answers = Vec::new();
                for _ in 0..2 {
                    let query = client.query(&documents).unwrap();
                    let words = lengths.len() * shape.0 * shape.1 * word_bytes;
                    assert!((words..words + 200).contains(&query.len()));
                    let answer = server.answer(&query).unwrap();
                    let got = client.decode(&answer).unwrap();
                    assert_eq!(got.len(), expected.len());
                    for (got, expected) in got.iter().zip(&expected) {
                        let error = (got - expected).abs();
                        assert!(
                            error <= server.spec().error_bound(),
                            "{shape:?} {pooling:?}: {error:e}"
                        );
                    }
                    answers.push(answer);
                }
                // The hint, four bytes a coefficient, travels once.
                assert_eq!(answers[0].len() - answers[1].len(), 4 * 2048 * shape.2);
            }
        }
    }
}

/// The bound is no more than some ten times what happens, or it would say nothing.
#[test]
fn the_stated_bound_is_near_what_happens() {
    let table = table((4, 256, 1));
    let server = Server::new(table.clone(), Options::default()).unwrap();
    let client = Client::generate(server.spec().clone()).unwrap();
    let (indices, offsets) = documents(&table, &[3; 400]);
    let documents = Documents::new(&indices, 4, &offsets).unwrap();
    let got = client.decode(&server.answer(&client.query(&documents).unwrap()).unwrap()).unwrap();
    let expected = exact(&table, &indices, &offsets, Pooling::Mean);
    let worst = got.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(worst > server.spec().error_bound() / 20.0, "{worst:e}");
}

#[test]
fn a_client_from_a_key_file_reads_its_answers() {
    let table = table((2, 9, 2));
    let server = Server::new(table.clone(), Options::default()).unwrap();
    let client = Client::generate(server.spec().clone()).unwrap();
    let (indices, offsets) = documents(&table, &[4, 2]);
    let documents = Documents::new(&indices, 2, &offsets).unwrap();
    let first = server.answer(&client.query(&documents).unwrap()).unwrap();
    let secret = client.to_secret_bytes();
    let again = Client::from_secret_bytes(&secret).unwrap();
    assert_eq!((again.label(), again.spec()), (client.label(), client.spec()));
    assert!(format!("{again:?}").contains("redacted"));
    let expected = again.decode(&first).unwrap();
    assert_eq!(client.decode(&first).unwrap(), expected);
    // Without a hint only those who have seen one can read.
    let second = server.answer(&client.query(&documents).unwrap()).unwrap();
    assert_eq!(client.decode(&second).unwrap().len(), expected.len());
    let blank = Client::from_secret_bytes(&secret).unwrap();
    assert!(blank.decode(&second).unwrap_err().to_string().contains("hint"));
    assert!(again.decode(&second).is_ok());
}

#[test]
fn what_the_tables_do_not_have_is_refused() {
    let server = Server::new(table((2, 9, 1)), Options { limit: 3, ..Options::default() }).unwrap();
    let client = Client::generate(server.spec().clone()).unwrap();
    let ask = |indices: &[i64], tables, offsets: &[usize]| {
        Documents::new(indices, tables, offsets)
            .and_then(|documents| client.query(&documents))
            .unwrap_err()
            .to_string()
    };
    assert!(ask(&[0, 9], 2, &[0, 1]).contains("from 0 to 8"));
    assert!(ask(&[0, -2], 2, &[0, 1]).contains("token 0"));
    assert!(ask(&[0, PADDING], 2, &[0, 1]).contains("in all tables"));
    assert!(ask(&[0, 1, 2], 2, &[0, 1]).contains("2 indices a token"));
    assert!(ask(&[0, 1, 2], 1, &[0, 3]).contains("one a table"));
    assert!(ask(&[0; 8], 2, &[0, 4]).contains("at most 3 tokens"));
    assert!(ask(&[0; 8], 2, &[0, 3]).contains("offsets"));
    assert!(ask(&[0; 4], 2, &[0, 2, 1, 2]).contains("offsets"));
    assert!(ask(&[], 2, &[0]).contains("at least one document"));
    let none = Options { pooling: Pooling::None, ..Options::default() };
    assert!(
        Server::new(table((1, 2, 1)), none).unwrap_err().to_string().contains("token by token")
    );
    for options in [
        Options { limit: 0, ..Options::default() },
        Options { word_bytes: 3, ..Options::default() },
    ] {
        assert!(Server::new(table((1, 2, 1)), options).is_err());
    }
}

#[test]
fn queries_and_answers_of_others_are_refused() {
    let make = |shape, options| {
        let server = Server::new(table(shape), options).unwrap();
        let client = Client::generate(server.spec().clone()).unwrap();
        (server, client)
    };
    let (server, client) = make((2, 9, 1), Options::default());
    let documents = Documents::new(&[1, 2, 3, 4], 2, &[0, 2]).unwrap();
    let query = client.query(&documents).unwrap();
    let answer = server.answer(&query).unwrap();
    let refused = |result: ciphervec::Result<Vec<u8>>| result.unwrap_err().to_string();

    let (other, stranger) = make((2, 10, 1), Options::default());
    assert!(refused(other.answer(&query)).contains("another table"));
    assert!(stranger.decode(&answer).unwrap_err().to_string().contains("another table"));
    let (limited, _) = make((2, 9, 1), Options { limit: 100, ..Options::default() });
    assert!(refused(limited.answer(&query)).contains("other settings"));
    let (wide, _) = make((2, 9, 1), Options { word_bytes: 6, ..Options::default() });
    assert!(refused(wide.answer(&query)).contains("other parameters"));

    let twin = Client::generate(server.spec().clone()).unwrap();
    assert!(twin.decode(&answer).unwrap_err().to_string().contains("wrong key"));
    assert!(server.answer(&answer).is_err() && client.decode(&query).is_err());
    assert!(Spec::from_bytes(&query).is_err() && Client::from_secret_bytes(&query).is_err());
}
