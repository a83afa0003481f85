//! Scan bench: 200,000 x 512 words and the packed ring form, one thread; beside them the time that
//! reading the matrix or the multiplications alone would take.

mod roofline;

use ciphervec_arith::matmul::{scan_u24, scan_u24_batch, scan_u32, scan_u32_batch, scan_u64};
use ciphervec_arith::ring::{STRIP, STRIP_BYTES, ring_scan_strip};
use ciphervec_arith::{AlignedBytes, Backend, Modulus, Stream, ntt_primes};
use criterion::{Criterion, criterion_group, criterion_main};

const ROWS: usize = 200_000;
const DIM: usize = 512;
const BATCH: usize = 64;
const NODES: usize = 128;

fn filled(len: usize) -> AlignedBytes {
    let mut data = AlignedBytes::zeroed(len);
    Stream::new(&[2; 32], 0).fill(&mut data);
    data
}

fn scans(c: &mut Criterion) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool");
    let bandwidth = roofline::read_bandwidth();
    let peaks = roofline::peaks();
    println!(
        "one thread: reads {:.1} GB/s, {:.1} G 52-bit multiply-adds/s, {:.1} G u32 multiply-adds/s",
        1e-9 * bandwidth,
        1e-9 * peaks.ifma,
        1e-9 * peaks.muladd32
    );
    let query: Vec<i32> =
        (0..(BATCH * DIM) as i32).map(|i| i * 2654435 % 40_000 - 20_000).collect();
    let wide: Vec<i64> = query.iter().map(|&q| i64::from(q)).collect();
    let data = filled(8 * ROWS * DIM);
    let mut out = vec![0u32; BATCH * ROWS];
    let mut out_wide = vec![0u64; ROWS];
    let m = Modulus::new(ntt_primes(50, 4096, 1).expect("a prime")[0]).expect("a modulus");
    let mut ring_query = vec![0; NODES * 2 * STRIP];
    Stream::new(&[2; 32], 1).uniform(&m, &mut ring_query);
    // 640 MB: 100 strips of 1000 blocks, each strip with a query of its own in real use.
    let (strips, blocks) = (100, 1000);
    let strip_bytes = blocks * NODES * STRIP_BYTES;
    let (mut u, mut v) = (vec![0; 2 * blocks * STRIP], vec![0; 2 * blocks * STRIP]);

    for backend in Backend::available() {
        let mut group = c.benchmark_group(format!("scan/{}", backend.name()));
        group.sample_size(10).warm_up_time(std::time::Duration::from_millis(100));
        let mut kernel = |name: &str, floor: f64, why: &str, work: &mut (dyn FnMut() + Send)| {
            let mut timed = || pool.install(|| backend.run(&mut *work).expect("available"));
            if std::env::args().any(|a| a == "--test") {
                return;
            }
            let seconds = roofline::best(5, &mut timed);
            roofline::report(&format!("{name}/{}", backend.name()), floor, why, seconds);
            group.bench_function(name, |b| b.iter(&mut timed));
        };
        let matrix = |word: usize| &data[..word * ROWS * DIM];
        let reading = |bytes: usize| bytes as f64 / bandwidth;
        kernel("u32", reading(4 * ROWS * DIM), "reading", &mut || {
            scan_u32(matrix(4), ROWS, DIM, &query[..DIM], &mut out[..ROWS]);
        });
        kernel("u24", reading(3 * ROWS * DIM), "reading", &mut || {
            scan_u24(matrix(3), ROWS, DIM, &query[..DIM], &mut out[..ROWS]);
        });
        kernel("u64", reading(8 * ROWS * DIM), "reading", &mut || {
            scan_u64(matrix(8), ROWS, DIM, &wide[..DIM], &mut out_wide);
        });
        let products = (ROWS * DIM * BATCH) as f64 / peaks.muladd32;
        if backend != Backend::Portable {
            kernel("u32 x 64 queries", products, "u32 multiply-adds", &mut || {
                scan_u32_batch(matrix(4), ROWS, DIM, &query, &mut out);
            });
            kernel("u24 x 64 queries", products, "u32 multiply-adds", &mut || {
                scan_u24_batch(matrix(3), ROWS, DIM, &query, &mut out);
            });
        }
        for count in [1, 2] {
            let queries = vec![ring_query.as_slice(); count];
            let n = count * blocks * STRIP;
            let name = format!("ring 640 MB x {count}");
            let terms = (strips * blocks * NODES * STRIP * 4 * count) as f64 / peaks.ifma;
            let (floor, why) = if terms > reading(strips * strip_bytes) {
                (terms, "52-bit products")
            } else {
                (reading(strips * strip_bytes), "reading")
            };
            kernel(&name, floor, why, &mut || {
                for s in 0..strips {
                    let strip = &data[s * strip_bytes..(s + 1) * strip_bytes];
                    ring_scan_strip(strip, blocks, NODES, &queries, &m, &mut u[..n], &mut v[..n]);
                }
            });
        }
        group.finish();
    }
}

criterion_group!(benches, scans);
criterion_main!(benches);
