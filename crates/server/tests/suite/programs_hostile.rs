//! Programs from strangers: plans that take too much, and bytes that are no plans, keys or inputs, are
//! refused with what is wrong; nothing of them is stored and the server goes on.

use crate::support::http::{Reply, Site};
use crate::support::programs::{Holder, PROBE, distances, expected, plan};
use axum::body::Body;
use ciphervec_owner::program::Step;

const PROGRAM: &str = "/v1/programs/nearest";

/// A frame whose checksum is right although its bytes are not.
fn reseal(bytes: &mut [u8]) {
    if bytes.len() < 64 {
        return;
    }
    let length = (bytes.len() - 64) as u64;
    bytes[24..32].copy_from_slice(&length.to_le_bytes());
    let mut hasher = blake3::Hasher::new();
    hasher.update(&bytes[..32]).update(&bytes[64..]);
    bytes[32..64].copy_from_slice(hasher.finalize().as_bytes());
}

/// Bytes that are almost right, under a checksum that is.
fn spoiled(good: &[u8]) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new(), b"CVEC".to_vec(), vec![0xa5; good.len()], good[..64].to_vec()];
    let stride = (good.len() / 40).max(1);
    for at in (0..good.len()).step_by(stride) {
        for value in [0xff, good[at] ^ 1] {
            let mut bytes = good.to_vec();
            bytes[at] = value;
            all.push(bytes.clone());
            reseal(&mut bytes);
            all.push(bytes);
        }
        let mut wide = good.to_vec();
        wide[at..(at + 4).min(good.len())].fill(0xff);
        reseal(&mut wide);
        all.push(wide);
        let mut cut = good[..at].to_vec();
        reseal(&mut cut);
        all.push(cut);
    }
    all.push([good, &[0]].concat());
    all.push([good, good].concat());
    all
}

#[track_caller]
fn is_refused(reply: &Reply, what: &str) {
    let known = reply.status.is_client_error();
    assert!(known, "{what}: {} {}", reply.status, String::from_utf8_lossy(&reply.body));
}

#[tokio::test]
async fn plans_beyond_a_limit_are_refused_with_the_limit_and_the_value() {
    let bytes = plan(distances(2000)).to_bytes();
    for (extra, named, value) in [
        (["--program-plan", "1000"], "at most 1000", bytes.len().to_string()),
        (["--program-steps", "2000"], "at most 2000", "2002 steps".to_owned()),
        (["--program-time", "1ms"], "at most 0.0 s", "predicted".to_owned()),
        (["--program-memory", "1MiB"], "at most 1048576", "memory".to_owned()),
        (["--program-memory", "5MiB"], "at most 5242880", "memory".to_owned()),
    ] {
        let site = Site::open(&extra);
        let refused = site.send("PUT", PROGRAM, &[], bytes.clone()).await;
        assert_eq!(refused.status, 422, "{extra:?}");
        let problem = refused.json();
        assert_eq!(problem["type"], "urn:ciphervec:limit", "{problem}");
        let detail = problem["detail"].as_str().unwrap();
        for part in [named, value.as_str(), extra[0]] {
            assert!(detail.contains(part), "{part}: {detail}");
        }
        assert_eq!(site.send("GET", PROGRAM, &[], Body::empty()).await.status, 404);
    }
    // A wide ring is refused by its description: nothing is computed for it.
    let mut wide = distances(0);
    wide.slots = 1 << 13;
    wide.steps.push(Step::Negate(3));
    let site = Site::open(&["--program-degree", "12"]);
    let refused = site.send("PUT", PROGRAM, &[], plan(wide).to_bytes()).await;
    let detail = refused.json()["detail"].to_string();
    assert!(detail.contains("2^13") && detail.contains("2^12"), "{detail}");
    // What is stored has an end, too.
    let site = Site::open(&["--program-quota", "400KiB"]);
    let plan = plan(distances(0));
    assert_eq!(site.send("PUT", PROGRAM, &[], plan.to_bytes()).await.status, 201);
    let mut refused = 0;
    for _ in 0..6 {
        let holder = Holder::of(&plan);
        let path = format!("{PROGRAM}/keys/{}", holder.key);
        let reply = site.send("PUT", &path, &[], holder.keys()).await;
        if reply.status == 507 {
            refused += 1;
            assert!(
                reply.json()["hint"].to_string().contains("--program-quota"),
                "{}",
                reply.json()
            );
        }
    }
    assert!((1..6).contains(&refused), "{refused}");
}

#[tokio::test]
async fn bytes_that_are_none_are_refused_and_nothing_of_them_is_kept() {
    let site = Site::open(&["--program-memory", "256MiB"]);
    let plan = plan(distances(0));
    let bytes = plan.to_bytes();
    let mut taken = 0;
    for (number, bad) in spoiled(&bytes).into_iter().enumerate() {
        let path = format!("/v1/programs/spoiled-{number}");
        let reply = site.send("PUT", &path, &[], bad).await;
        // Some change nothing that a reader could hold against them: a name, a constant.
        if reply.status == 201 {
            taken += 1;
            assert_eq!(site.send("DELETE", &path, &[], Body::empty()).await.status, 204);
        } else {
            is_refused(&reply, &path);
        }
    }
    assert!(taken < 200, "{taken}");
    assert_eq!(site.send("PUT", PROGRAM, &[], bytes).await.status, 201);
    let holder = Holder::of(&plan);
    let keys = format!("{PROGRAM}/keys/{}", holder.key);
    let good = holder.keys();
    for bad in spoiled(&good) {
        let reply = site.send("PUT", &keys, &[], bad).await;
        if reply.status == 204 {
            // A residue that is another one: no reader can tell. Its owner gets noise.
            assert_eq!(site.send("DELETE", &keys, &[], Body::empty()).await.status, 204);
        } else {
            is_refused(&reply, "keys");
        }
    }
    assert_eq!(site.send("PUT", &keys, &[], good).await.status, 204);
    let (probe, gallery) = (holder.seal("probe", &PROBE), holder.seal("gallery", &[1.0; 16]));
    let run = format!("{PROGRAM}/run?kept=gallery");
    let kept = format!("{keys}/inputs/gallery");
    for bad in spoiled(&gallery) {
        let reply = site.send("PUT", &kept, &[], bad).await;
        assert!(reply.status == 204 || reply.status.is_client_error(), "{}", reply.status);
    }
    assert_eq!(site.send("PUT", &kept, &[], gallery.clone()).await.status, 204);
    for bad in spoiled(&probe) {
        let reply = site.send("POST", &run, &[], bad).await;
        assert!(reply.status == 200 || reply.status.is_client_error(), "{}", reply.status);
    }
    // Inputs that are missing, come twice, or are another key's or another plan's.
    let other = Holder::of(&plan);
    let foreign = super::support::programs::plan(distances(3));
    let elsewhere = Holder::of(&foreign).seal("probe", &PROBE);
    let twice = [probe.clone(), probe.clone()].concat();
    let mixed = [probe.clone(), other.seal("gallery", &[1.0; 16])].concat();
    for (path, body, says) in [
        (run.clone(), Vec::new(), "name the key"),
        (format!("{run}&key={}", holder.key), Vec::new(), "probe"),
        (run.clone(), gallery.clone(), "came twice"),
        (format!("{PROGRAM}/run"), twice, "came twice"),
        (format!("{PROGRAM}/run"), mixed, "key"),
        (run.clone(), other.seal("probe", &PROBE), "no evaluation keys"),
        (run.clone(), elsewhere, ""),
        (format!("{run}&kept=gallery"), probe.clone(), "came twice"),
        (format!("{run}&kept=nobody"), probe.clone(), "nobody"),
        (format!("{run}&key=00"), probe.clone(), "16 hex digits"),
        (format!("{run}&other=1"), probe.clone(), "means nothing"),
    ] {
        let reply = site.send("POST", &path, &[], body).await;
        is_refused(&reply, says);
        assert!(reply.json()["detail"].to_string().contains(says), "{says}: {}", reply.json());
    }
    for path in ["keys/zz", "keys/0000000000000000/inputs/..", "keys/0000000000000000/inputs/a%2Fb"]
    {
        let reply = site.send("PUT", &format!("{PROGRAM}/{path}"), &[], probe.clone()).await;
        is_refused(&reply, path);
    }
    let answer = site.send("POST", &run, &[], probe).await;
    assert_eq!(holder.open(&answer.body), expected(&[1.0; 16]));
}
