/** The fields of the console's forms. */

export function Field(props: {
  name: string;
  value: string;
  set: (value: string) => void;
  wrong?: boolean;
  numeric?: boolean;
}) {
  const { name, value, set, wrong = false, numeric = false } = props;
  return (
    <label className="field">
      <span>{name}</span>
      <input
        value={value}
        onChange={(event) => set(event.target.value)}
        aria-invalid={wrong}
        inputMode={numeric ? "numeric" : undefined}
        autoComplete="off"
        spellCheck={false}
      />
    </label>
  );
}

export function Choice<T extends string>(props: {
  name: string;
  value: T;
  options: readonly T[];
  set: (value: T) => void;
}) {
  const { name, value, options, set } = props;
  return (
    <label className="field">
      <span>{name}</span>
      <select value={value} onChange={(event) => set(event.target.value as T)}>
        {options.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
    </label>
  );
}
