/** The policy of scripts: code starts scripts of this origin's assets and nothing else. */

interface PolicyFactory {
  createPolicy(name: string, rules: { createScriptURL: (address: string) => string }): unknown;
}

/** The one policy that the server's headers allow. Text never becomes markup or a script: there is no rule for it. */
export function onlyOwnScripts(): void {
  const factory = (globalThis as { trustedTypes?: PolicyFactory }).trustedTypes;
  factory?.createPolicy("default", { createScriptURL: ownScript });
}

export function ownScript(address: string): string {
  const whole = new URL(address, location.href);
  if (whole.origin === location.origin && whole.pathname.startsWith("/assets/")) return address;
  throw new TypeError(
    `the page starts scripts of its own server alone, and not ${whole.origin}${whole.pathname}`,
  );
}
