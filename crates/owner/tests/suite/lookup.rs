//! Private lookup end to end, against sums of the plain rows.

use ciphervec_arith::sample::Stream;
use ciphervec_he_secret::ckks::{Evaluator, KeyPlan, SecretKey};
use ciphervec_owner::lookup::{
    Client, Documents, Options, PADDING, Pooling, Server, Spec, Strategy, Table,
};

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
        let mut length = 0;
        for token in pair[0]..pair[1] {
            let indices = &indices[token * table.tables()..][..table.tables()];
            length += usize::from(indices[0] != PADDING);
            for (one, index) in indices.iter().enumerate() {
                if *index != PADDING {
                    let row = table.row(one, *index as usize);
                    sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
                }
            }
        }
        let length = if pooling == Pooling::Mean { length.max(1) } else { 1 };
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
                let options = Options { pooling, word_bytes, ..Options::default() };
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
    let refused = |result: ciphervec_owner::Result<Vec<u8>>| result.unwrap_err().to_string();

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
    assert!(Server::from_bytes(&query).is_err());
}

/// Client, server and what the client gets for documents of these lengths.
fn look_up(table: &Table, options: Options, lengths: &[usize]) -> (Server, Vec<f64>, Vec<f64>) {
    let server = Server::new(table.clone(), options).unwrap();
    let spec = Spec::from_bytes(&server.spec().to_bytes()).unwrap();
    assert_eq!(&spec, server.spec());
    let client = Client::generate(spec).unwrap();
    let server = Server::from_bytes(&server.to_bytes()).unwrap();
    let (indices, offsets) = documents(table, lengths);
    let tokens: Vec<usize> = (0..=offsets[lengths.len()]).collect();
    let query = client.query(&Documents::new(&indices, table.tables(), &offsets).unwrap()).unwrap();
    if let Some(keys) = client.keys().unwrap() {
        assert!(server.answer(&query).unwrap_err().to_string().contains("register"));
        server.register(&keys).unwrap();
    }
    let again = Client::from_secret_bytes(&client.to_secret_bytes()).unwrap();
    let got = again.decode(&server.answer(&query).unwrap()).unwrap();
    // A row for every token is a document of one.
    let offsets = if options.pooling == Pooling::None { &tokens } else { &offsets };
    let expected = exact(table, &indices, offsets, options.pooling);
    assert_eq!(got.len(), expected.len());
    (server, got, expected)
}

#[test]
fn strategies_that_look_up_token_by_token_obey_their_bounds() {
    for (strategy, shape, pooling) in [
        (Strategy::OneHot, (2, 20, 3), Pooling::None),
        (Strategy::OneHotDigits, (2, 30, 2), Pooling::Mean),
        (Strategy::IveDigits, (4, 64, 1), Pooling::Sum),
        (Strategy::IveDigits, (1, 65, 2), Pooling::None),
        (Strategy::Ive, (2, 16, 2), Pooling::Mean),
    ] {
        let options = Options { strategy, pooling, ..Options::default() };
        let table = table(shape);
        let (server, got, expected) = look_up(&table, options, &[9, 0, 30, 1]);
        let error = |at: usize| (got[at] - expected[at]).abs();
        let worst = (0..got.len()).map(error).fold(0.0, f64::max);
        assert!(worst <= server.spec().error_bound(), "{strategy}: {worst:e}");
        let square = (0..got.len()).map(|at| error(at).powi(2)).sum::<f64>() / got.len() as f64;
        let rows = table.values();
        let mean = rows.iter().map(|value| value * value).sum::<f64>() / rows.len() as f64;
        let longest = if pooling == Pooling::Sum { 30.0 } else { 1.0 };
        // √ℓ rows are summed, and the root mean square of a batch of few tokens scatters.
        let goal = f64::exp2(-14.0) * (shape.0 as f64 * longest * mean).sqrt();
        assert!(square.sqrt() < 1.5 * goal, "{strategy}: {:e} > {goal:e}", square.sqrt());
    }
}

#[test]
fn tokens_beyond_the_slots_take_another_batch() {
    let table = table((1, 8, 1)).with_zero_row().unwrap();
    let options = Options {
        strategy: Strategy::OneHot,
        pooling: Pooling::None,
        limit: 1 << 17,
        ..Options::default()
    };
    let slots = Server::new(table.clone(), options).unwrap().recipe().unwrap().batch();
    let rows = Table::new(&table.values()[..8], (1, 8, 1)).unwrap();
    let (indices, offsets) = documents(&rows, &[slots + 3]);
    let server = Server::new(table.clone(), options).unwrap();
    let client = Client::generate(server.spec().clone()).unwrap();
    let query = client.query(&Documents::new(&indices, 1, &offsets).unwrap()).unwrap();
    let got = client.decode(&server.answer(&query).unwrap()).unwrap();
    assert_eq!(got.len(), slots + 3);
    for (got, index) in got.iter().zip(&indices) {
        let expected = if *index == PADDING { 0.0 } else { table.row(0, *index as usize)[0] };
        assert!((got - expected).abs() <= server.spec().error_bound());
    }
    // What the server can go on with has padding as rows of zeros.
    assert_eq!(server.embed(&query).unwrap().len(), 2);
}

/// Rows that are looked up with a level left can be multiplied on the server: their squares.
#[test]
fn looked_up_rows_stay_usable() {
    let table = table((1, 9, 1));
    let options = Options {
        strategy: Strategy::IveDigits,
        pooling: Pooling::None,
        levels: 1,
        ..Options::default()
    };
    let server = Server::new(table, options).unwrap();
    let client = Client::generate(server.spec().clone()).unwrap();
    let keys = client.keys().unwrap().unwrap();
    server.register(&keys).unwrap();
    let indices: Vec<i64> = (0..9).collect();
    let query = client.query(&Documents::new(&indices, 1, &[0, 9]).unwrap()).unwrap();
    let rows = server.embed(&query).unwrap();
    assert_eq!((rows.len(), rows[0].len(), rows[0][0].level()), (1, 1, 1));
    let evaluator = Evaluator::without_keys(server.recipe().unwrap().params().clone());
    let square = evaluator.rescale(&evaluator.multiply(&rows[0][0], &rows[0][0]).unwrap()).unwrap();
    assert_eq!((square.level(), square.degree()), (0, 2));
}

#[test]
fn token_strategies_refuse_what_is_not_theirs() {
    let options = |strategy| Options { strategy, pooling: Pooling::None, ..Options::default() };
    let make = |shape, strategy| {
        let server = Server::new(table(shape), options(strategy)).unwrap();
        let client = Client::generate(server.spec().clone()).unwrap();
        (server, client)
    };
    let (server, client) = make((1, 16, 1), Strategy::IveDigits);
    let (_, other) = make((1, 17, 1), Strategy::IveDigits);
    let documents = Documents::new(&[1, 2], 1, &[0, 2]).unwrap();
    let query = client.query(&documents).unwrap();
    let name = server.register(&client.keys().unwrap().unwrap()).unwrap();
    let answer = server.answer(&query).unwrap();
    assert!(other.decode(&answer).is_err());
    let twin = Client::generate(server.spec().clone()).unwrap();
    assert!(twin.decode(&answer).unwrap_err().to_string().contains("wrong key"));
    assert!(server.forget(name) && !server.forget(name));
    assert!(server.answer(&query).unwrap_err().to_string().contains("register"));
    assert!(server.register(&query).is_err());
    let other = SecretKey::generate(server.recipe().unwrap().params()).unwrap();
    let none = other.evaluation_keys(&KeyPlan::new()).unwrap().to_bytes();
    assert!(server.register(&none).unwrap_err().to_string().contains("lacks a key"));

    let (plain, counting) = make_histogram();
    assert!(plain.register(&[]).unwrap_err().to_string().contains("no evaluation keys"));
    assert!(plain.embed(&query).unwrap_err().to_string().contains("token by token"));
    assert!(plain.answer(&query).is_err() && counting.decode(&answer).is_err());
    let levels = Options { levels: 1, ..Options::default() };
    assert!(Server::new(table((1, 2, 1)), levels).is_err());
    assert!(Server::new(table((1, 5000, 1)), options(Strategy::Ive)).is_err());
}

fn make_histogram() -> (Server, Client) {
    let server = Server::new(table((1, 16, 1)), Options::default()).unwrap();
    let client = Client::generate(server.spec().clone()).unwrap();
    (server, client)
}
