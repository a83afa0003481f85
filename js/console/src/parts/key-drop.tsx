/** Takes a key file and its passphrase. Opened keys stay in the memory of this page. */
import { type DragEvent, type FormEvent, useId, useRef, useState } from "react";
import { bytes } from "../format";
import type { KeyHolder } from "../keys/contract";
import { usePage } from "../state";
import { problemIn } from "./asked";

/** The largest file that is read at all: key files have some hundred bytes. */
const LARGEST = 1 << 20;

interface KeyDropProps {
  why: string;
  /** Whether the collection is one that needs no key. */
  plain: boolean;
}

export function KeyDrop({ why, plain }: KeyDropProps) {
  const { server, holder, setHolder, warn } = usePage();
  const [remember, setRemember] = useState(false);
  const [file, setFile] = useState<File | null>(null);
  const [over, setOver] = useState(false);
  const [waiting, setWaiting] = useState(false);
  const [says, setSays] = useState<string | null>(null);
  const field = useRef<HTMLInputElement>(null);
  const id = useId();

  function take(chosen: File | undefined) {
    setOver(false);
    if (chosen === undefined) return;
    setSays(
      chosen.size > LARGEST ? `${chosen.name} has ${bytes(chosen.size)}: a key file is far smaller.` : null,
    );
    setFile(chosen.size > LARGEST ? null : chosen);
  }

  async function submit(event: FormEvent) {
    event.preventDefault();
    if (file === null || field.current === null) return;
    const passphrase = field.current.value;
    field.current.value = "";
    await open(async () => {
      // What opens keys is loaded when there are some to open.
      const { unlock } = await import("../keys/client");
      return unlock(new Uint8Array(await file.arrayBuffer()), passphrase, {
        token: server.token,
        remember,
        warn,
      });
    });
  }

  async function open(keys: () => Promise<KeyHolder>) {
    setWaiting(true);
    setSays(null);
    try {
      setHolder(await keys());
    } catch (cause) {
      setSays(problemIn(cause).message);
    }
    setWaiting(false);
  }

  async function openPlain() {
    const { withoutKey } = await import("../keys/client");
    await open(async () => withoutKey({ token: server.token, remember, warn }));
  }

  if (holder !== null) return null;
  return (
    <form
      className={over ? "key-drop over" : "key-drop"}
      onSubmit={(event) => void submit(event)}
      onDragOver={(event: DragEvent) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event: DragEvent) => {
        event.preventDefault();
        take(event.dataTransfer.files[0]);
      }}
    >
      <p className="lead">{why}</p>
      <label className="file">
        <input type="file" onChange={(event) => take(event.target.files?.[0])} />
        <span>{file === null ? "Drop a key file here, or choose one" : file.name}</span>
      </label>
      {file !== null && (
        <label className="field" htmlFor={id}>
          <span>Its passphrase</span>
          <input ref={field} id={id} type="password" autoComplete="off" disabled={waiting} />
        </label>
      )}
      {says !== null && (
        <p className="wrong" role="alert">
          {says}
        </p>
      )}
      {file !== null && (
        <>
          <label className="check">
            <input
              type="checkbox"
              checked={remember}
              onChange={(event) => setRemember(event.target.checked)}
            />
            <span>
              Keep in this browser, encrypted, what was seen of the collections, so that an older state is
              noticed next time. Otherwise this tab forgets everything.
            </span>
          </label>
          <button type="submit" className="button primary" disabled={waiting}>
            {waiting ? "Opening, which takes a second by design" : "Open"}
          </button>
        </>
      )}
      {plain && file === null && (
        <button type="button" className="button" disabled={waiting} onClick={() => void openPlain()}>
          Go on without a key
        </button>
      )}
      <p className="quiet">
        The file is read in this page and goes nowhere. But this page comes from the server: drop a key only
        where you trust whoever runs it with the key, or run the server's program on your own machine.
      </p>
    </form>
  );
}
