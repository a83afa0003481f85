/** Metrics: readings as the server writes them, and what is worked out between two of them. */
import { describe, expect, it } from "vitest";
import { parse, quantile, Reading, rate } from "../../src/api/metrics.ts";
import { History } from "../../src/load/history.ts";

const text = (scans: number[], requests: number) => `# HELP ciphervec_requests Answers by route and status.
# TYPE ciphervec_requests counter
ciphervec_requests_total{method="GET",route="/v1/collections/{name}",status="200"} ${requests}
ciphervec_requests_total{method="GET",route="/quoted\\"and\\\\so\\n",status="404"} 1
ciphervec_query_scan_seconds_sum 1.5
ciphervec_query_scan_seconds_count ${scans.at(-1)}
ciphervec_query_scan_seconds_bucket{le="0.1"} ${scans[0]}
ciphervec_query_scan_seconds_bucket{le="0.2"} ${scans[1]}
ciphervec_query_scan_seconds_bucket{le="+Inf"} ${scans[2]}
ciphervec_process_resident_bytes 0
# EOF
`;

describe("readings", () => {
  it("have every sample with its labels", () => {
    const samples = [...parse(text([1, 2, 3], 7))];
    expect(samples).toHaveLength(8);
    expect(samples[0]).toEqual({
      name: "ciphervec_requests_total",
      labels: { method: "GET", route: "/v1/collections/{name}", status: "200" },
      value: 7,
    });
    expect(samples[1]?.labels["route"]).toBe('/quoted"and\\so\n');
    expect(new Reading(text([1, 2, 3], 7), 0).sum("requests_total")).toBe(8);
    expect(new Reading("", 0).sum("requests_total")).toBeNull();
  });

  it("give rates, and none over a restart", () => {
    const before = new Reading(text([0, 0, 0], 10), 1000);
    const now = new Reading(text([0, 0, 0], 40), 3000);
    expect(rate(before, now, "requests_total")).toBe(15);
    expect(rate(now, before, "requests_total")).toBeNull();
    expect(rate(before, new Reading(text([0, 0, 0], 2), 5000), "requests_total")).toBeNull();
  });

  it("give quantiles by straight lines within a bucket, of what came in between alone", () => {
    const before = new Reading(text([100, 100, 100], 0), 0);
    const now = new Reading(text([110, 120, 120], 0), 1000);
    // Ten below 0.1 and ten between 0.1 and 0.2.
    expect(quantile(before, now, "query_scan_seconds", 0.5)).toBeCloseTo(0.1, 12);
    expect(quantile(before, now, "query_scan_seconds", 0.75)).toBeCloseTo(0.15, 12);
    expect(quantile(before, now, "query_scan_seconds", 0.25)).toBeCloseTo(0.05, 12);
    expect(quantile(now, now, "query_scan_seconds", 0.5)).toBeNull();
    // Beyond the last bound nothing is made up.
    expect(quantile(null, new Reading(text([0, 0, 5], 0), 0), "query_scan_seconds", 0.5)).toBe(0.2);
  });

  it("are kept as far as the picture is wide", () => {
    const history = new History(3);
    for (let at = 0; at < 5; at += 1) history.add(text([at, at, at], 10 * at), 1000 * at);
    expect(history.moments.map(({ at }) => at)).toEqual([2000, 3000, 4000]);
    expect(history.moments.at(-1)).toMatchObject({ requests: 10, queries: 1, process: null, waiting: null });
  });
});
