//! Samplers against pinned vectors, their own definition in integers, and the distributions they
//! claim.

use ciphervec_arith::sample::GAUSSIAN_SIGMA;
use ciphervec_arith::{Backend, GAUSSIAN_BOUND, Modulus, Stream};

fn stream(number: u64) -> Stream {
    let seed: [u8; 32] = std::array::from_fn(|i| i as u8);
    Stream::new(&seed, number)
}

/// 64-bit FNV-1a, enough to notice that a vector moved.
fn fingerprint(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes
        .into_iter()
        .fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

/// The ChaCha20 block function as RFC 8439 section 2.3 writes it, independent of the crate behind
/// [`Stream`].
fn block(key: &[u8; 32], counter: u32, nonce: &[u8; 12]) -> [u8; 64] {
    let word = |b: &[u8]| u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
    let mut state = [0u32; 16];
    state[..4].copy_from_slice(&[0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]);
    for i in 0..8 {
        state[4 + i] = word(&key[4 * i..]);
    }
    state[12] = counter;
    for i in 0..3 {
        state[13 + i] = word(&nonce[4 * i..]);
    }
    let mut x = state;
    let mut quarter = |a: usize, b: usize, c: usize, d: usize| {
        for (p, q, r, turn) in [(a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)] {
            x[p] = x[p].wrapping_add(x[q]);
            x[r] = (x[r] ^ x[p]).rotate_left(turn);
        }
    };
    for _ in 0..10 {
        for i in 0..4 {
            quarter(i, 4 + i, 8 + i, 12 + i);
        }
        for i in 0..4 {
            quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4);
        }
    }
    let mut out = [0; 64];
    for i in 0..16 {
        out[4 * i..4 * i + 4].copy_from_slice(&x[i].wrapping_add(state[i]).to_le_bytes());
    }
    out
}

#[test]
fn streams_are_chacha20() {
    let seed: [u8; 32] = std::array::from_fn(|i| i as u8);
    let number = 0x0102_0304_0506_0708u64;
    let mut nonce = [0; 12];
    nonce[..8].copy_from_slice(&number.to_le_bytes());
    let expected: Vec<u8> = (0..).flat_map(|i| block(&seed, i, &nonce)).take(30_000).collect();
    for backend in Backend::available() {
        // In uneven pieces: what a call leaves of a block is where the next one starts.
        for piece in [77, 1024, 1500, 5003, 30_000] {
            let mut bytes = vec![0xff; 30_000];
            let mut stream = Stream::new(&seed, number);
            backend
                .run(|| bytes.chunks_mut(piece).for_each(|part| stream.fill(part)))
                .expect("an available back-end");
            assert!(bytes == expected, "{} in pieces of {piece}", backend.name());
        }
    }
}

/// Own vectors, pinned when the formats were laid down: if one moves, stored segments cannot be
/// opened any more.
#[test]
fn vectors_stay_where_they_are() {
    let m = Modulus::new(1_125_899_906_826_241).expect("a modulus");
    let (mut words, mut trits, mut errors) = ([0u64; 5000], [0i8; 5000], [0i32; 5000]);
    stream(1).uniform(&m, &mut words);
    let uniform = fingerprint(words.iter().flat_map(|x| x.to_le_bytes()));
    stream(2).uniform_bits(37, &mut words);
    let uniform_bits = fingerprint(words.iter().flat_map(|x| x.to_le_bytes()));
    stream(3).ternary(&mut trits);
    let ternary = fingerprint(trits.iter().flat_map(|x| x.to_le_bytes()));
    stream(4).gaussian(&mut errors);
    let gaussian = fingerprint(errors.iter().flat_map(|x| x.to_le_bytes()));
    assert_eq!(
        [uniform, uniform_bits, ternary, gaussian],
        [
            10_362_658_976_651_603_992,
            11_123_883_553_099_538_794,
            7_690_056_475_624_386_538,
            10_448_780_880_300_382_533,
        ]
    );
}

#[test]
fn samples_follow_the_documented_rule() {
    let mut raw = vec![0; 8 * 4000];
    let word = |raw: &[u8], i: usize| u64::from_le_bytes(std::array::from_fn(|k| raw[8 * i + k]));
    for q in [3u64, 257, 1 << 37, (1 << 50) - 27, (1 << 61) - 1] {
        let m = Modulus::new(q).expect("a modulus");
        let mut out = vec![0; 1500];
        stream(5).uniform(&m, &mut out);
        stream(5).fill(&mut raw);
        let bits = 64 - (q - 1).leading_zeros();
        let expected: Vec<u64> = (0..4000)
            .map(|i| word(&raw, i) & (u64::MAX >> (64 - bits)))
            .filter(|&x| x < q)
            .take(1500)
            .collect();
        assert_eq!(out, expected, "mod {q}");
    }
    let mut trits = vec![0i8; 2501];
    stream(6).ternary(&mut trits);
    stream(6).fill(&mut raw);
    let expected: Vec<i8> = raw
        .iter()
        .filter(|&&b| b < 243)
        .flat_map(|&b| (0..5).map(move |k| (b as u32 / 3u32.pow(k) % 3) as i8 - 1))
        .take(2501)
        .collect();
    assert_eq!(trits, expected);
}

#[test]
fn streams_go_on_where_they_stopped() {
    let (mut whole, mut parts) = (vec![0i32; 3000], vec![0i32; 3000]);
    stream(7).gaussian(&mut whole);
    let mut s = stream(7);
    let (a, b) = parts.split_at_mut(1234);
    s.gaussian(a);
    s.gaussian(b);
    assert_eq!(whole, parts);
    let mut other = vec![0i32; 3000];
    stream(8).gaussian(&mut other);
    assert_ne!(whole, other);
}

#[test]
fn streams_go_to_any_place() {
    let mut whole = vec![0i32; 3000];
    stream(7).gaussian(&mut whole);
    let mut s = stream(7);
    for start in [0, 1, 63, 64, 65, 1027, 130, 2936] {
        let mut part = [0i32; 64];
        s.seek(8 * start as u64);
        s.gaussian(&mut part);
        assert_eq!(part, whole[start..start + 64], "{start}");
    }
}

/// Chi-square of counts against probabilities.
fn chi_square(counts: &[u64], probabilities: &[f64], total: u64) -> f64 {
    counts
        .iter()
        .zip(probabilities)
        .map(|(&c, p)| {
            let expected = p * total as f64;
            (c as f64 - expected).powi(2) / expected
        })
        .sum()
}

#[test]
fn gaussian_has_its_distribution() {
    const COUNT: usize = 1 << 22;
    let mut out = vec![0i32; COUNT];
    stream(9).gaussian(&mut out);
    let weight = |x: i32| (-f64::from(x * x) / (2.0 * GAUSSIAN_SIGMA * GAUSSIAN_SIGMA)).exp();
    let total: f64 = (-60..=60).map(weight).sum();
    // Values beyond 14 are expected fewer than a hundred times; they share one cell.
    let mut counts = [0u64; 30];
    for &e in &out {
        assert!(e.abs() <= GAUSSIAN_BOUND);
        counts[if e.abs() <= 14 { (e + 14) as usize } else { 29 }] += 1;
    }
    let mut probabilities: Vec<f64> = (-14..=14).map(|x| weight(x) / total).collect();
    probabilities.push(1.0 - probabilities.iter().sum::<f64>());
    // 29 degrees of freedom: the 1 - 10^-9 quantile is below 105.
    assert!(chi_square(&counts, &probabilities, COUNT as u64) < 105.0);
    let mean = out.iter().map(|&e| f64::from(e)).sum::<f64>() / COUNT as f64;
    let variance = out.iter().map(|&e| f64::from(e * e)).sum::<f64>() / COUNT as f64;
    // Six standard deviations of the estimators: sigma / sqrt(n), sigma^2 sqrt(2 / n).
    let n = COUNT as f64;
    assert!(mean.abs() < 6.0 * GAUSSIAN_SIGMA / n.sqrt(), "mean {mean}");
    let variance_error = (variance - GAUSSIAN_SIGMA * GAUSSIAN_SIGMA).abs();
    assert!(variance_error < 6.0 * 10.24 * (2.0 / n).sqrt(), "variance {variance}");
}

/// The tail: how often |e| >= k, against the exact probability, as far out as four million samples
/// reach.
#[test]
fn gaussian_has_its_tail() {
    const COUNT: usize = 1 << 22;
    let mut out = vec![0i32; COUNT];
    stream(10).gaussian(&mut out);
    let weight = |x: i32| (-f64::from(x * x) / (2.0 * GAUSSIAN_SIGMA * GAUSSIAN_SIGMA)).exp();
    let total: f64 = (-60..=60).map(weight).sum();
    for k in 1..=20 {
        let p = 2.0 * (k..=60).map(weight).sum::<f64>() / total;
        let seen = out.iter().filter(|e| e.abs() >= k).count() as f64;
        let expected = p * COUNT as f64;
        // Seven standard deviations and a few counts where the tail is a Poisson count.
        assert!(
            (seen - expected).abs() < 7.0 * expected.sqrt() + 4.0,
            "|e| >= {k}: {seen}, {expected}"
        );
    }
    assert!(out.iter().any(|&e| e >= 14) && out.iter().any(|&e| e <= -14));
}

#[test]
fn uniform_and_ternary_are_flat() {
    const COUNT: usize = 1 << 21;
    let m = Modulus::new(48).expect("a modulus");
    let mut words = vec![0u64; COUNT];
    stream(11).uniform(&m, &mut words);
    let mut counts = [0u64; 48];
    words.iter().for_each(|&x| counts[x as usize] += 1);
    // 47 degrees of freedom: the 1 - 10^-9 quantile is below 135.
    assert!(chi_square(&counts, &[1.0 / 48.0; 48], COUNT as u64) < 135.0);

    let mut trits = vec![0i8; COUNT];
    stream(12).ternary(&mut trits);
    let mut pairs = [0u64; 9];
    for &[a, b] in trits.as_chunks::<2>().0 {
        pairs[(3 * (a + 1) + b + 1) as usize] += 1;
    }
    // Neighbours are independent too: 8 degrees of freedom, 1 - 10^-9 quantile below 60.
    assert!(chi_square(&pairs, &[1.0 / 9.0; 9], COUNT as u64 / 2) < 60.0);
}

#[test]
fn debug_output_shows_no_state() {
    assert_eq!(format!("{:?}", stream(13)), "Stream(..)");
}
