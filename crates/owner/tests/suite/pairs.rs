//! Similarities of encrypted vectors against float64, in every layout, within the error that the plan stated.

use ciphervec_he_secret::ckks::{Params, ParamsSpec, Ring};
use ciphervec_he_secret::params::Security;
use ciphervec_owner::similarity::ckks::{
    ArrayLayout, Client, EncryptOptions, EncryptedArray, KeyList, Lengths, Operation, PlainRows,
    Plan, PlanRequest, PostProcessing, Role, Server, Spread,
};
use ciphervec_owner::{Error, Result};

const LAYOUTS: [ArrayLayout; 3] =
    [ArrayLayout::Slots, ArrayLayout::Coefficients, ArrayLayout::Single];

fn request(operation: Operation, layout: ArrayLayout, dimension: usize) -> PlanRequest {
    PlanRequest {
        operation,
        layout,
        dimension,
        magnitude: 1.0,
        precision_bits: 20,
        plain: false,
        security: Security::Classical128,
    }
}

fn owner(operation: Operation, layout: ArrayLayout, dimension: usize) -> Client {
    Client::for_plan(&Plan::new(request(operation, layout, dimension)).unwrap()).unwrap()
}

/// Numbers in ±1 from a congruential generator: the same on every machine.
fn numbers(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn rows(values: &[f64], dimension: usize) -> PlainRows<'_> {
    PlainRows::new(values, values.len() / dimension, dimension).unwrap()
}

fn options(layout: ArrayLayout, normalise: bool) -> EncryptOptions {
    EncryptOptions {
        layout,
        normalize: normalise,
        magnitude: Some(1.0),
        ..EncryptOptions::default()
    }
}

fn exact(operation: Operation, x: &[f64], y: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let squared = x.iter().zip(y).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
    match operation {
        Operation::Dot => dot(x, y),
        Operation::Cosine => dot(x, y) / (dot(x, x) * dot(y, y)).sqrt(),
        Operation::SquaredDistance => squared,
        Operation::Distance => squared.sqrt(),
    }
}

fn compare(
    server: &Server,
    operation: Operation,
    x: &EncryptedArray,
    y: &EncryptedArray,
) -> Result<EncryptedArray> {
    match operation {
        Operation::Dot => server.dot(x, y),
        Operation::Cosine => server.cosine(x, y),
        Operation::SquaredDistance => server.squared_distance(x, y),
        Operation::Distance => server.distance(x, y),
    }
}

fn compare_plain(
    server: &Server,
    operation: Operation,
    x: &EncryptedArray,
    y: &PlainRows<'_>,
) -> Result<EncryptedArray> {
    match operation {
        Operation::Dot => server.dot_plain(x, y),
        Operation::Cosine => server.cosine_plain(x, y),
        Operation::SquaredDistance => server.squared_distance_plain(x, y),
        Operation::Distance => server.distance_plain(x, y),
    }
}

/// Every row of `found` against float64; `count` rows of y, or one for all.
fn check(operation: Operation, found: &[f64], x: &[f64], y: &[f64], dimension: usize, bound: f64) {
    let row = |values: &[f64], index: usize| {
        let start = if values.len() == dimension { 0 } else { index * dimension };
        values[start..start + dimension].to_vec()
    };
    assert_eq!(found.len(), x.len().max(y.len()) / dimension);
    for (index, found) in found.iter().enumerate() {
        let expected = exact(operation, &row(x, index), &row(y, index));
        // A distance is the root of what the bound is for.
        let bound = if operation == Operation::Distance { bound / expected } else { bound };
        assert!(
            (found - expected).abs() <= bound,
            "{operation:?} row {index}: {found} for {expected}, bound {bound:e}"
        );
    }
}

#[test]
fn every_similarity_in_every_layout_stays_within_the_stated_error() {
    for layout in LAYOUTS {
        for operation in
            [Operation::Dot, Operation::Cosine, Operation::SquaredDistance, Operation::Distance]
        {
            for (count, dimension) in [(1, 24), (7, 100)] {
                let plan = Plan::new(request(operation, layout, dimension)).unwrap();
                assert!(plan.error() <= plan.request().largest() * f64::exp2(-20.0));
                let owner = Client::for_plan(&plan).unwrap();
                let server = owner.server();
                let (x, y) = (numbers(count * dimension, 1), numbers(count * dimension, 2));
                let how = options(layout, operation == Operation::Cosine);
                let encrypt =
                    |values: &[f64]| owner.encrypt(&rows(values, dimension), &how).unwrap();
                let (a, b) = (encrypt(&x), encrypt(&y));
                let answer = compare(server, operation, &a, &b).unwrap();
                let found = owner.decrypt(&answer).unwrap();
                check(operation, &found, &x, &y, dimension, plan.error());
                let answer = compare_plain(server, operation, &a, &rows(&y, dimension)).unwrap();
                let found = owner.decrypt(&answer).unwrap();
                check(operation, &found, &x, &y, dimension, plan.error());
            }
        }
    }
}

#[test]
fn a_single_vector_meets_a_batch() {
    for layout in LAYOUTS {
        let (dimension, count) = (60, 70);
        let owner = owner(Operation::Dot, layout, dimension);
        let server = owner.server();
        let error = server.request().unwrap().error_under(server.params());
        let (x, y) = (numbers(dimension, 3), numbers(count * dimension, 4));
        let how = options(layout, false);
        let one = owner.encrypt(&rows(&x, dimension), &how).unwrap();
        for spread in [Spread::Pairs, Spread::Gallery] {
            let many = EncryptOptions { spread, ..how };
            let many = owner.encrypt(&rows(&y, dimension), &many).unwrap();
            for answer in [
                server.dot(&one, &many),
                server.dot(&many, &one),
                server.dot_plain(&one, &rows(&y, dimension)),
                server.dot_plain(&many, &rows(&x, dimension)),
            ] {
                let found = owner.decrypt(&answer.unwrap()).unwrap();
                check(Operation::Dot, &found, &x, &y, dimension, error);
            }
        }
    }
}

#[test]
fn a_gallery_packs_densest_and_takes_single_vectors_only() {
    let owner = owner(Operation::Dot, ArrayLayout::Coefficients, 128);
    let values = numbers(40 * 128, 5);
    let how = options(ArrayLayout::Coefficients, false);
    let encrypt = |spread| {
        owner
            .encrypt(&rows(&values, 128), &EncryptOptions { spread, role: Role::Right, ..how })
            .unwrap()
    };
    let (gallery, pairs) = (encrypt(Spread::Gallery), encrypt(Spread::Pairs));
    assert_eq!((gallery.ciphertexts(), pairs.ciphertexts()), (2, 5));
    let left = EncryptOptions { role: Role::Left, spread: Spread::Gallery, ..how };
    let left = owner.encrypt(&rows(&values, 128), &left).unwrap();
    let text = owner.server().dot(&left, &gallery).unwrap_err().to_string();
    assert!(text.contains("spread pairs"), "{text}");
}

#[test]
fn the_dot_product_of_coefficients_needs_no_key_and_meets_its_error() {
    let plan = Plan::new(request(Operation::Dot, ArrayLayout::Coefficients, 2048)).unwrap();
    assert_eq!((plan.params().degree(), plan.keys().products().keys(plan.params())), (4096, 0));
    assert_eq!(plan.keys().turns().keys(plan.params()), 0);
    let plan = Plan::new(request(Operation::Dot, ArrayLayout::Slots, 2048)).unwrap();
    let (products, rotations) = plan.keys().bytes(plan.params()).unwrap();
    assert!(products + rotations <= 5_000_000, "{products} + {rotations}");
}

/// The stated error is no more than a power of ten above what is seen: a bound that says something.
#[test]
fn stated_errors_are_close_to_those_seen() {
    for layout in LAYOUTS {
        let (dimension, count) = (if layout == ArrayLayout::Single { 64 } else { 512 }, 40);
        let owner = owner(Operation::Dot, layout, dimension);
        let stated = owner.request().unwrap().error_under(owner.server().params());
        let (x, y) = (numbers(count * dimension, 6), numbers(count * dimension, 7));
        let how = options(layout, false);
        let encrypt = |values: &[f64]| owner.encrypt(&rows(values, dimension), &how).unwrap();
        let answer = owner.server().dot(&encrypt(&x), &encrypt(&y)).unwrap();
        let found = owner.decrypt(&answer).unwrap();
        let errors = found.iter().enumerate().map(|(row, found)| {
            let range = row * dimension..(row + 1) * dimension;
            found - exact(Operation::Dot, &x[range.clone()], &y[range])
        });
        let seen = (errors.map(|error| error * error).sum::<f64>() / count as f64).sqrt();
        // Six deviations are stated; coordinates in ±1 are half as long as the longest on average.
        assert!(
            6.0 * seen <= 1.5 * stated && stated <= 60.0 * seen,
            "{layout:?} {seen:e} {stated:e}"
        );
        let estimate = answer.error_estimate();
        assert!(
            seen <= 4.0 * estimate && estimate <= 64.0 * seen,
            "{layout:?} estimate {estimate:e}, seen {seen:e}"
        );
    }
}

#[test]
fn arithmetic_follows_float64() {
    let spec = ParamsSpec {
        log_degree: 13,
        ring: Ring::ConjugateInvariant,
        base_bits: 50,
        scale_bits: 40,
        levels: 2,
        special_primes: 1,
        special_bits: 50,
        digits: 3,
        security: Security::Classical128,
    };
    let params = Params::new(spec).unwrap();
    let list = KeyList { relinearise: Some(2), rotation_level: 2, ..KeyList::default() };
    let list = KeyList { rotations: [3, -1].into(), ..list }.sums(16);
    let owner = Client::generate(&params, list).unwrap();
    let server = owner.server();
    let (x, y) = (numbers(48, 8), numbers(48, 9));
    let zip =
        |f: fn(f64, f64) -> f64| -> Vec<f64> { x.iter().zip(&y).map(|(x, y)| f(*x, *y)).collect() };
    for layout in [ArrayLayout::Slots, ArrayLayout::Single] {
        let encrypt =
            |values: &[f64]| owner.encrypt(&rows(values, 16), &options(layout, false)).unwrap();
        let (a, b) = (encrypt(&x), encrypt(&y));
        let half = PlainRows::new(&[0.5], 1, 1).unwrap();
        let three = PlainRows::new(&[3.0], 1, 1).unwrap();
        let product = server.multiply(&a, &b).unwrap();
        for (found, expected) in [
            (server.add(&a, &b), zip(|x, y| x + y)),
            (server.sub(&a, &b), zip(|x, y| x - y)),
            (server.negate(&a), zip(|x, _| -x)),
            (server.add_plain(&a, &rows(&y, 16)), zip(|x, y| x + y)),
            (server.sub_plain(&a, &half), zip(|x, _| x - 0.5)),
            (server.multiply(&a, &b), zip(|x, y| x * y)),
            (server.multiply_plain(&a, &rows(&y, 16)), zip(|x, y| x * y)),
            (server.multiply_plain(&a, &half), zip(|x, _| x * 0.5)),
            (server.multiply_plain(&a, &three), zip(|x, _| x * 3.0)),
            (server.add(&product, &a), zip(|x, y| x * y + x)),
            (server.multiply(&product, &a), zip(|x, y| x * y * x)),
        ] {
            let found = owner.decrypt(&found.unwrap()).unwrap();
            for (found, expected) in found.iter().zip(&expected) {
                assert!((found - expected).abs() < 1e-7, "{layout:?}: {found} for {expected}");
            }
        }
        assert_eq!(server.multiply_plain(&a, &three).unwrap().level(), 2);
        assert_eq!(product.level(), 1);
    }
    let one = owner.encrypt(&rows(&x[..16], 16), &options(ArrayLayout::Slots, false)).unwrap();
    for by in [3i64, -1] {
        let found = owner.decrypt(&server.rotate(&one, by).unwrap()).unwrap();
        for (at, found) in found.iter().enumerate() {
            let expected = x[(at as i64 + by).rem_euclid(16) as usize];
            assert!((found - expected).abs() < 1e-7);
        }
    }
    let text = server.rotate(&one, 5).unwrap_err().to_string();
    assert!(text.contains("rotation by 5"), "{text}");
}

#[test]
fn lengths_of_a_known_interval_need_no_owner() {
    let lengths = Lengths::new(0.5, 2.0, 14).unwrap();
    let depth = lengths.cosine_depth(true);
    let params = Params::for_depth_in(Ring::ConjugateInvariant, depth, 20, Security::Classical128);
    let params = params.unwrap();
    let level = params.max_level();
    let list = KeyList { relinearise: Some(level), rotation_level: level, ..KeyList::default() };
    let owner = Client::generate(&params, list.sums(8)).unwrap();
    let server = owner.server();
    // Coordinates up to 0.55 leave eight of them shorter than 2; the first makes them longer than 0.5.
    let vectors = |count: usize, seed| -> Vec<f64> {
        let random = numbers(8 * count, seed);
        random.iter().enumerate().map(|(i, x)| if i % 8 == 0 { 0.55 } else { 0.55 * x }).collect()
    };
    for (layout, count, left) in [
        (ArrayLayout::Slots, 1, depth - lengths.cosine_depth(false)),
        (ArrayLayout::Slots, 6, 0),
        (ArrayLayout::Single, 5, depth - lengths.cosine_depth(false)),
    ] {
        let (x, mut y) = (vectors(count, 20), vectors(count, 21));
        // Distances are in the interval as well.
        y.iter_mut().step_by(8).for_each(|first| *first = -*first);
        let how = EncryptOptions { layout, ..EncryptOptions::default() };
        let encrypt = |values: &[f64]| owner.encrypt(&rows(values, 8), &how).unwrap();
        let (a, b) = (encrypt(&x), encrypt(&y));
        let bound = f64::exp2(-12.0);
        let answer = server.cosine_within(&a, &b, &lengths).unwrap();
        assert_eq!(answer.level(), left, "{layout:?}");
        check(Operation::Cosine, &owner.decrypt(&answer).unwrap(), &x, &y, 8, bound);
        let answer = server.cosine_within_plain(&a, &rows(&y, 8), &lengths).unwrap();
        check(Operation::Cosine, &owner.decrypt(&answer).unwrap(), &x, &y, 8, bound);
        for answer in [
            server.distance_within(&a, &b, &lengths),
            server.distance_within_plain(&a, &rows(&y, 8), &lengths),
        ] {
            let answer = answer.unwrap();
            assert_eq!(answer.post_processing(), PostProcessing::Plain);
            check(Operation::Distance, &owner.decrypt(&answer).unwrap(), &x, &y, 8, bound);
        }
    }
    assert!(Lengths::new(0.0, 1.0, 10).is_err() && Lengths::new(2.0, 1.0, 10).is_err());
}

#[test]
fn bytes_round_trip_and_server_and_owner_meet_through_them() {
    for layout in LAYOUTS {
        let dimension = 20;
        let owner = owner(Operation::Dot, layout, dimension);
        let server = Server::from_bytes(&owner.server().to_bytes()).unwrap();
        let (x, y) = (numbers(3 * dimension, 10), numbers(3 * dimension, 11));
        let how = options(layout, false);
        let send =
            |values: &[f64]| owner.encrypt(&rows(values, dimension), &how).unwrap().to_bytes();
        let read = |bytes: &[u8]| EncryptedArray::from_bytes(&server, bytes).unwrap();
        let answer = server.dot(&read(&send(&x)), &read(&send(&y))).unwrap();
        let answer = EncryptedArray::from_bytes(owner.server(), &answer.to_bytes()).unwrap();
        let error = server.request().unwrap().error_under(server.params());
        let found = owner.decrypt(&answer).unwrap();
        check(Operation::Dot, &found, &x, &y, dimension, error);
        // A fresh array travels with seeds, at half the size of the same one read and written again.
        let bytes = send(&x);
        let again = read(&bytes).to_bytes();
        assert!(bytes.len() < again.len() * 6 / 10, "{} {}", bytes.len(), again.len());
        assert_eq!(read(&again).to_bytes(), again);
        assert_eq!(Server::from_bytes(&server.to_bytes()).unwrap().to_bytes(), server.to_bytes());
    }
}

#[test]
fn an_owner_comes_back_from_its_bytes() {
    let owner = owner(Operation::Cosine, ArrayLayout::Slots, 33);
    let x = numbers(33, 12);
    let array = owner.encrypt(&rows(&x, 33), &options(ArrayLayout::Slots, true)).unwrap();
    let again = Client::from_secret_bytes(&owner.to_secret_bytes()).unwrap();
    assert_eq!(again.label(), owner.label());
    assert_eq!(again.request(), owner.request());
    assert_eq!(again.list(), owner.list());
    let cosine = again.server().cosine(&array, &array).unwrap();
    assert!((owner.decrypt(&cosine).unwrap()[0] - 1.0).abs() < 1e-6);
    let shown = format!("{owner:?}");
    assert!(shown.contains("redacted") && shown.len() < 60, "{shown}");
}

#[test]
fn what_does_not_go_together_is_refused_with_the_next_step() {
    let owner_a = owner(Operation::Dot, ArrayLayout::Coefficients, 32);
    let owner_b = owner(Operation::Dot, ArrayLayout::Coefficients, 32);
    let x = numbers(32, 13);
    let coefficients = options(ArrayLayout::Coefficients, false);
    let with = |owner: &Client, how: EncryptOptions| owner.encrypt(&rows(&x, 32), &how).unwrap();
    let (a, b) = (with(&owner_a, coefficients), with(&owner_b, coefficients));
    let server = owner_a.server();
    assert!(matches!(
        server.dot(&a, &b),
        Err(Error::Scheme(ciphervec_he_secret::Error::WrongKey { .. }))
    ));
    assert!(matches!(
        owner_a.decrypt(&b),
        Err(Error::Scheme(ciphervec_he_secret::Error::WrongKey { .. }))
    ));
    let says = |result: Result<EncryptedArray>, word: &str| {
        let text = result.unwrap_err().to_string();
        assert!(text.contains(word), "{text}");
    };
    let left = with(&owner_a, EncryptOptions { role: Role::Left, ..coefficients });
    says(server.dot(&left, &left), "role both");
    says(server.squared_distance(&left, &left), "role both");
    says(server.multiply(&a, &a), "take dot");
    says(server.cosine(&a, &a), "normalise=True");
    says(server.rotate(&a, 1), "layout slots");
    let distance = server.distance(&a, &a).unwrap();
    says(server.negate(&distance), "squared_distance");
    let product = server.dot(&a, &a).unwrap();
    says(server.dot(&product, &a), "one dimension");
    says(owner_a.encrypt(&rows(&[2.0], 1), &coefficients), "magnitude");
    let zero = PlainRows::new(&[0.0; 32], 1, 32).unwrap();
    says(owner_a.encrypt(&zero, &options(ArrayLayout::Coefficients, true)), "zero vector");
    let long = numbers(5000, 14);
    says(owner_a.encrypt(&rows(&long, 5000), &coefficients), "1 to 4096");
    assert!(
        PlainRows::new(&[1.0, f64::NAN], 1, 2).unwrap_err().to_string().contains("coordinate 1")
    );

    let slots = owner(Operation::Dot, ArrayLayout::Slots, 32);
    let array = with(&slots, options(ArrayLayout::Slots, false));
    let product = slots.server().dot(&array, &array).unwrap();
    says(slots.server().multiply(&product, &product), "level");
    // Keys for sums are of the level below a product: a fresh vector's sum is refused by name.
    says(slots.server().sum(&array), "rotation by 1");
}

#[test]
fn plans_out_of_reach_say_what_is_within() {
    let refused = |request: PlanRequest| Plan::new(request).unwrap_err().to_string();
    let base = request(Operation::Dot, ArrayLayout::Slots, 2048);
    let text = refused(PlanRequest { precision_bits: 40, ..base });
    assert!(text.contains("at most") && text.contains("40 bits"), "{text}");
    assert!(refused(PlanRequest { dimension: 0, ..base }).contains("dimension"));
    assert!(refused(PlanRequest { magnitude: f64::NAN, ..base }).contains("magnitude"));
    let plan = Plan::new(base).unwrap();
    let text = plan.explain().unwrap();
    for word in ["dot", "2048", "slots", "degree 2^13", "128-bit classical security", "bytes"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    // The quantum row of the table is narrower.
    let quantum = PlanRequest { security: Security::Quantum128, ..base };
    let quantum = Plan::new(PlanRequest { layout: ArrayLayout::Coefficients, ..quantum }).unwrap();
    assert!(quantum.params().log_key_modulus() <= 101);
}

#[test]
fn damaged_bytes_are_refused() {
    let owner = owner(Operation::Dot, ArrayLayout::Coefficients, 8);
    let array =
        owner.encrypt(&rows(&numbers(8, 15), 8), &options(ArrayLayout::Coefficients, false));
    let bytes = array.unwrap().to_bytes();
    let read = |bytes: &[u8]| EncryptedArray::from_bytes(owner.server(), bytes);
    assert!(read(&bytes).is_ok());
    for length in [0, 63, 64, 80, bytes.len() - 1] {
        assert!(read(&bytes[..length]).is_err());
    }
    for at in (0..bytes.len()).step_by(97) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 4;
        assert!(read(&damaged).is_err(), "byte {at}");
    }
    let mut trailing = bytes.clone();
    trailing.push(0);
    assert!(read(&trailing).is_err());
    let server = owner.server().to_bytes();
    assert!(Server::from_bytes(&server[..server.len() - 1]).is_err());
    assert!(Server::from_bytes(&bytes).is_err());
}
