//! Programs through the router: two clients with keys of their own on one plan, what they keep, restarts,
//! uploads that are used once, runs that nobody waits for, and a bucket with two servers.

use crate::support::http::{Reply, Site, make_token};
use crate::support::programs::{Holder, PROBE, distances, expected, plan};
use axum::body::Body;
use ciphervec_owner::program::Plan;
use ciphervec_server::auth::Verb;
use ciphervec_server::storage::programs::{ProgramLimits, Programs, RunRequest, Sender};
use ciphervec_server::{Database, DatabaseError, DatabaseOptions};
use object_store::ObjectStore;
use object_store::memory::InMemory;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const PROGRAM: &str = "/v1/programs/nearest";

async fn stored(extra: &[&str], idle: usize) -> (Site, Arc<Plan>) {
    let (site, plan) = (Site::open(extra), plan(distances(idle)));
    let put = site.send("PUT", PROGRAM, &[], plan.to_bytes()).await;
    assert_eq!(put.status, 201, "{}", put.json());
    (site, plan)
}

fn gallery(seed: u64) -> Vec<f64> {
    (0..16).map(|index| ((index * 7 + seed * 5) % 16) as f64).collect()
}

async fn state(site: &Site) -> serde_json::Value {
    site.send("GET", PROGRAM, &[], Body::empty()).await.json()
}

fn is_on_the_disk(folder: &Path, bytes: &[u8]) -> bool {
    let mut entries = std::fs::read_dir(folder).unwrap().flatten();
    entries.any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return is_on_the_disk(&path, bytes);
        }
        let content = std::fs::read(&path).unwrap();
        content.windows(bytes.len()).any(|window| window == bytes)
    })
}

#[tokio::test]
async fn two_clients_run_one_program_on_what_each_of_them_keeps() {
    let (site, plan) = stored(&[], 0).await;
    let (one, two) = (Holder::of(&plan), Holder::of(&plan));
    one.settle(&site, "nearest", &gallery(1)).await;
    two.settle(&site, "nearest", &gallery(2)).await;
    for (holder, seed) in [(&one, 1), (&two, 2), (&one, 1)] {
        let answer = holder.ask(&site, "nearest").await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        assert_eq!(holder.open(&answer.body), expected(&gallery(seed)));
        let timing = answer.header("server-timing");
        assert!(["queue;", "load;", "run;"].iter().all(|part| timing.contains(part)), "{timing}");
    }
    // All inputs in one body, in any order; and none, with the key named.
    let both = [one.seal("gallery", &gallery(3)), one.seal("probe", &PROBE)].concat();
    let answer = site.send("POST", &format!("{PROGRAM}/run"), &[], both).await;
    assert_eq!(one.open(&answer.body), expected(&gallery(3)));
    let path = format!("{PROGRAM}/keys/{}/inputs/probe.1", one.key);
    assert_eq!(site.send("PUT", &path, &[], one.seal("probe", &PROBE)).await.status, 204);
    let path = format!("{PROGRAM}/run?key={}&kept=gallery&kept=probe.1", one.key);
    let answer = site.send("POST", &path, &[], Body::empty()).await;
    assert_eq!(one.open(&answer.body), expected(&gallery(1)));

    // What the server knows.
    let known = state(&site).await;
    assert_eq!(known["plan"]["id"], plan.id().to_string());
    assert_eq!(known["plan"]["inputs"][0]["name"], "probe");
    assert_eq!(known["plan"]["key_bytes"], one.keys().len());
    assert_eq!(known["plan"]["inputs"][0]["bytes"], one.seal("probe", &PROBE).len());
    assert_eq!(known["plan"]["answer_bytes"], answer.body.len());
    assert!(known["plan"]["predicted_ms"].as_f64().unwrap() > 0.0);
    assert_eq!(known["keys"].as_object().unwrap().len(), 2);
    let kept = &known["keys"][&one.key]["inputs"];
    assert_eq!(
        (&kept["gallery"]["input"], &kept["probe.1"]["input"]),
        (&"gallery".into(), &"probe".into())
    );
    let list = site.send("GET", "/v1/programs", &[], Body::empty()).await.json();
    assert_eq!(
        (&list["programs"][0]["name"], &list["programs"][0]["keys"]),
        (&"nearest".into(), &2.into())
    );
    let none = site.send("GET", "/v1/collections", &[], Body::empty()).await.json();
    assert_eq!(none["collections"], serde_json::json!([]));

    // The same again is no change; another plan, or other keys of that id, are refused.
    assert_eq!(site.send("PUT", PROGRAM, &[], plan.to_bytes()).await.status, 200);
    let other =
        site.send("PUT", PROGRAM, &[], super::support::programs::plan(distances(1)).to_bytes());
    let other = other.await;
    assert_eq!(
        (other.status.as_u16(), &other.json()["type"]),
        (409, &"urn:ciphervec:exists".into())
    );
    let path = format!("{PROGRAM}/keys/{}", one.key);
    assert_eq!(site.send("PUT", &path, &[], one.keys()).await.status, 409, "drawn anew");

    // A restart loses nothing; a replaced gallery is used at once, and its bytes are gone.
    let old = one.seal("gallery", &gallery(4));
    let path = format!("{path}/inputs/gallery");
    assert_eq!(site.send("PUT", &path, &[], old.clone()).await.status, 204);
    assert!(is_on_the_disk(&site.data(), &old[1000..1100]));
    site.app.close();
    let site = Site::on(site.folder, &[]);
    assert_eq!(one.open(&one.ask(&site, "nearest").await.body), expected(&gallery(4)));
    assert_eq!(site.send("PUT", &path, &[], one.seal("gallery", &gallery(5))).await.status, 204);
    assert_eq!(one.open(&one.ask(&site, "nearest").await.body), expected(&gallery(5)));
    assert!(!is_on_the_disk(&site.data(), &old[1000..1100]));

    // What is removed is gone, and nothing else.
    assert_eq!(site.send("DELETE", &path, &[], Body::empty()).await.status, 204);
    assert_eq!(site.send("DELETE", &path, &[], Body::empty()).await.status, 404);
    assert_eq!(one.ask(&site, "nearest").await.status, 400);
    let path = format!("{PROGRAM}/keys/{}", two.key);
    assert_eq!(site.send("DELETE", &path, &[], Body::empty()).await.status, 204);
    let gone = two.ask(&site, "nearest").await;
    assert!(gone.json()["detail"].to_string().contains("no evaluation keys"), "{}", gone.json());
    assert_eq!(site.send("DELETE", PROGRAM, &[], Body::empty()).await.status, 204);
    assert_eq!(one.ask(&site, "nearest").await.status, 404);
    let list = site.send("GET", "/v1/programs", &[], Body::empty()).await.json();
    assert_eq!(list["programs"], serde_json::json!([]));
    assert_eq!(site.send("PUT", PROGRAM, &[], plan.to_bytes()).await.status, 201);
}

#[tokio::test]
async fn keys_come_in_pieces_and_are_stored_once_also_after_a_restart() {
    let (site, plan) = stored(&[], 0).await;
    let holder = Holder::of(&plan);
    let keys = holder.keys();
    let uploads = format!("{PROGRAM}/uploads");
    let length = format!("{{\"length\":{}}}", keys.len());
    let started = site.send("POST", &uploads, &[], length).await;
    assert_eq!(started.status, 201, "{}", started.json());
    let path = started.header("location").to_owned();
    let half = keys.len() / 2;
    let piece = async |site: &Site, from: usize, bytes: &[u8]| {
        let offset = from.to_string();
        let headers = [("upload-offset", &*offset)];
        site.send("PATCH", &path, &headers, bytes.to_vec()).await.status.as_u16()
    };
    assert_eq!(piece(&site, 0, &keys[..half]).await, 204);
    site.app.close();
    let site = Site::on(site.folder, &[]);
    let progress = site.send("GET", &path, &[], Body::empty()).await.json();
    assert_eq!(progress["offset"], half);
    let upload = progress["upload"].as_str().unwrap().to_owned();
    let put = format!("{PROGRAM}/keys/{}?upload={upload}", holder.key);
    let key = ("idempotency-key", "one");
    assert_eq!(site.send("PUT", &put, &[key], Body::empty()).await.status, 409, "unfinished");
    assert_eq!(piece(&site, half, &keys[half..]).await, 204);
    // A collection's uploads are others, as are another program's.
    let other = path.replace("/programs/nearest", "/programs/other");
    assert_eq!(site.send("GET", &other, &[], Body::empty()).await.status, 404);
    for _ in 0..2 {
        assert_eq!(site.send("PUT", &put, &[key], Body::empty()).await.status, 204);
    }
    assert_eq!(site.send("GET", &path, &[], Body::empty()).await.status, 404, "used");
    assert_eq!(site.send("PUT", &put, &[], Body::empty()).await.status, 404, "without the key");
    site.app.close();
    let site = Site::on(site.folder, &[]);
    assert_eq!(site.send("PUT", &put, &[key], Body::empty()).await.status, 204);
    let reused = format!("{PROGRAM}/keys/{}/inputs/gallery", holder.key);
    let reused = site.send("PUT", &reused, &[key], holder.seal("gallery", &gallery(1))).await;
    assert_eq!(reused.json()["type"], "urn:ciphervec:key-reused");
    let both = [holder.seal("gallery", &gallery(3)), holder.seal("probe", &PROBE)].concat();
    let answer = site.send("POST", &format!("{PROGRAM}/run"), &[], both).await;
    assert_eq!(holder.open(&answer.body), expected(&gallery(3)));
}

#[tokio::test]
async fn what_one_token_brought_another_one_runs_on_and_does_not_change() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens.json");
    let bearer = |verbs: &[Verb]| format!("Bearer {}", *make_token(&file, "near*", verbs).token);
    let (operator, enrols, asks, foreign) = (
        bearer(&[Verb::Admin]),
        bearer(&[Verb::Keep]),
        bearer(&[Verb::Run]),
        bearer(&[Verb::Keep, Verb::Run]),
    );
    let site = Site::on(folder, &["--tokens", file.to_str().unwrap()]);
    let send = async |who: &str, method: &str, path: &str, body: Vec<u8>| -> Reply {
        site.send(method, path, &[("authorization", who)], body).await
    };
    let plan = plan(distances(0));
    assert_eq!(send(&enrols, "PUT", PROGRAM, plan.to_bytes()).await.status, 403);
    assert_eq!(send(&operator, "PUT", PROGRAM, plan.to_bytes()).await.status, 201);
    let holder = Holder::of(&plan);
    let keys = format!("{PROGRAM}/keys/{}", holder.key);
    let kept = format!("{keys}/inputs/gallery");
    assert_eq!(send(&asks, "PUT", &keys, holder.keys()).await.status, 403);
    assert_eq!(send(&enrols, "PUT", &keys, holder.keys()).await.status, 204);
    let sealed = holder.seal("gallery", &gallery(1));
    assert_eq!(send(&enrols, "PUT", &kept, sealed.clone()).await.status, 204);
    // Another token of the same verbs sees them, runs on them, and changes nothing.
    let run = format!("{PROGRAM}/run?kept=gallery");
    for who in [&asks, &foreign] {
        let answer = send(who, "POST", &run, holder.seal("probe", &PROBE)).await;
        assert_eq!(holder.open(&answer.body), expected(&gallery(1)));
    }
    assert_eq!(send(&enrols, "POST", &run, holder.seal("probe", &PROBE)).await.status, 403);
    for (method, path) in [("PUT", &kept), ("DELETE", &kept), ("DELETE", &keys)] {
        let refused = send(&foreign, method, path, sealed.clone()).await;
        assert_eq!(refused.status, 403, "{method} {path}");
        assert!(refused.json()["detail"].to_string().contains("another token"));
    }
    let seen = send(&foreign, "GET", PROGRAM, Vec::new()).await.json();
    assert_eq!(seen["keys"][&holder.key]["yours"], false);
    let seen = send(&enrols, "GET", PROGRAM, Vec::new()).await.json();
    assert_eq!(seen["keys"][&holder.key]["yours"], true);
    assert_eq!(send(&operator, "DELETE", &keys, Vec::new()).await.status, 204);
}

#[tokio::test]
async fn a_run_that_nobody_waits_for_ends_and_one_that_takes_too_long_is_stopped() {
    let extra = ["--program-runs", "1", "--queue", "1", "--threads", "2"];
    let (site, plan) = stored(&extra, 60_000).await;
    let holder = Holder::of(&plan);
    holder.settle(&site, "nearest", &gallery(1)).await;
    let idle = site.app.programs.resident();
    let probe = holder.seal("probe", &PROBE);
    let start = || {
        let (router, probe) = (site.router.clone(), probe.clone());
        let path = format!("{PROGRAM}/run?kept=gallery");
        tokio::spawn(async move {
            crate::support::http::send(&router, "POST", &path, &[], probe).await.status.as_u16()
        })
    };
    let until = async |what: &str, there: &dyn Fn() -> bool| {
        let began = Instant::now();
        while !there() {
            assert!(began.elapsed() < Duration::from_secs(20), "{what}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let running = start();
    until("the run takes memory", &|| site.app.programs.resident() > idle).await;
    let next = start();
    until("another one waits", &|| site.app.programs.waiting() == 1).await;
    // No third one waits: it is told when to come back.
    let busy = holder.ask(&site, "nearest").await;
    assert_eq!(busy.status, 503);
    assert!(busy.header("retry-after").parse::<u64>().unwrap() >= 1);
    // Whoever waits and leaves is not run; whoever runs and leaves is stopped.
    next.abort();
    until("nobody waits", &|| site.app.programs.waiting() == 0).await;
    running.abort();
    until("the memory is free", &|| site.app.programs.resident() == idle).await;
    let metrics = site.send("GET", "/metrics", &[], Body::empty()).await;
    let metrics = String::from_utf8(metrics.body.to_vec()).unwrap();
    assert!(metrics.contains("ciphervec_stopped_runs_total{reason=\"left\"} 1"), "{metrics}");
    assert!(metrics.contains("ciphervec_runs_in_flight 0"), "{metrics}");

    // The operator allows less time now: the plan stays, its runs are stopped.
    site.app.close();
    let site = Site::on(site.folder, &["--program-time", "50ms"]);
    let late = holder.ask(&site, "nearest").await;
    assert_eq!(
        (late.status.as_u16(), &late.json()["type"]),
        (422, &"urn:ciphervec:deadline".into())
    );
    assert!(late.json()["detail"].to_string().contains("--program-time"), "{}", late.json());
}

#[tokio::test]
async fn clients_take_turns_where_memory_holds_the_keys_of_one() {
    let (site, plan) = stored(&[], 0).await;
    let holders: Vec<Holder> = (0..3).map(|_| Holder::of(&plan)).collect();
    for (seed, holder) in holders.iter().enumerate() {
        holder.settle(&site, "nearest", &gallery(seed as u64)).await;
    }
    let memory = state(&site).await["plan"]["memory"].as_u64().unwrap();
    site.app.close();
    let (budget, queue) = (memory.to_string(), ["--queue", "16", "--program-runs", "3"]);
    let site =
        Site::on(site.folder, &[&["--program-memory", budget.as_str()][..], &queue].concat());
    let asked = (0..12).map(|turn| {
        let (holder, router) = (&holders[turn % 3], site.router.clone());
        let (path, probe) = (format!("{PROGRAM}/run?kept=gallery"), holder.seal("probe", &PROBE));
        let programs = site.app.programs.clone();
        async move {
            let answer = crate::support::http::send(&router, "POST", &path, &[], probe).await;
            assert!(programs.resident() <= memory, "{}", programs.resident());
            assert_eq!(holder.open(&answer.body), expected(&gallery(turn as u64 % 3)));
        }
    });
    futures_util::future::join_all(asked).await;
}

fn limits() -> ProgramLimits {
    ProgramLimits {
        plan: 1 << 20,
        steps: 1000,
        log_degree: 17,
        time: Duration::from_secs(60),
        memory: 1 << 30,
        runs: 1,
        queue: 8,
        quota: 1 << 30,
        threads: 2,
    }
}

#[tokio::test]
async fn two_servers_share_the_programs_of_a_bucket() {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let open = || {
        let url = "s3://bucket/some".to_owned();
        let options = DatabaseOptions { url, memory_budget: 1 << 28, threads: 2, queue: 8 };
        let store = Arc::clone(&store);
        tokio::task::spawn_blocking(move || {
            let database = Database::open_store(store, "some", &options).unwrap();
            let programs = Programs::open(&database, limits(), Arc::default()).unwrap();
            (database, programs)
        })
    };
    let ((_one, one), (two_database, two)) = (open().await.unwrap(), open().await.unwrap());
    let sender = Sender { token: "-".into(), admin: false };
    let plan = plan(distances(0));
    let put = |programs: &Arc<Programs>| {
        let (programs, sender) = (Arc::clone(programs), sender.clone());
        let bytes = plan.to_bytes().into();
        async move { programs.put("nearest", bytes, &sender, ()).await.map(|(new, _)| new) }
    };
    assert!(put(&one).await.unwrap());
    assert!(!put(&two).await.unwrap(), "the other one has stored it");
    let get = async |programs: &Arc<Programs>| {
        let programs = Arc::clone(programs);
        tokio::task::spawn_blocking(move || programs.get("nearest")).await.unwrap()
    };
    let (first, second) = (get(&one).await.unwrap(), get(&two).await.unwrap());
    // Each brings the keys of one client at the same time; none is lost.
    let holders = [Holder::of(&plan), Holder::of(&plan)];
    let bring = [(&one, &first, &holders[0]), (&two, &second, &holders[1])];
    let brought = bring.map(|(programs, program, holder)| {
        let (programs, program, sender) = (programs.clone(), program.clone(), sender.clone());
        let (key, keys) = (holder.key.clone(), holder.keys());
        let gallery = holder.seal("gallery", &gallery(1));
        tokio::spawn(async move {
            programs.put_keys(&program, &key, keys, &sender, (None, ())).await?;
            programs.keep(&program, (&key, "mine"), gallery, &sender, (None, ())).await
        })
    });
    for one in brought {
        assert!(one.await.unwrap().unwrap());
    }
    tokio::time::sleep(Duration::from_millis(2100)).await;
    for programs in [&one, &two] {
        let program = get(programs).await.unwrap();
        for holder in &holders {
            let inputs = holder.seal("probe", &PROBE).into();
            let request = RunRequest { key: None, kept: vec!["mine".into()], inputs };
            let answer = programs.run(&program, request, ()).await.unwrap();
            assert_eq!(holder.open(&answer.bytes), expected(&gallery(1)));
        }
    }
    // Collections of the same place do not see them, and what one server removes is gone for all.
    let names = tokio::task::spawn_blocking(move || two_database.names()).await.unwrap().unwrap();
    assert!(names.is_empty(), "{names:?}");
    tokio::task::spawn_blocking(move || one.remove("nearest")).await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_millis(2100)).await;
    assert!(matches!(get(&two).await, Err(DatabaseError::NotFound(_))));
    assert!(put(&two).await.unwrap(), "and can be made again");
}
