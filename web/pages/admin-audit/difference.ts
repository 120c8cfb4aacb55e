/** A field of what was changed. Undefined where there is none. */
export interface FieldChange {
  /** Such as `budget.amount`. */
  readonly field: string;
  readonly before: unknown;
  readonly after: unknown;
}

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns the fields of objects within objects, by their path. */
function flatten(fields: Fields, path = ''): Map<string, unknown> {
  const flat = new Map<string, unknown>();
  for (const [name, value] of Object.entries(fields)) {
    if (isFields(value) && Object.keys(value).length > 0)
      for (const [inner, innerValue] of flatten(value, `${path}${name}.`)) flat.set(inner, innerValue);
    else flat.set(`${path}${name}`, value);
  }
  return flat;
}

/** Returns what was changed, field by field: first what is different, then what stayed. */
export function compareFields(before: object | null, after: object | null): readonly FieldChange[] {
  const [old, current] = [flatten((before ?? {}) as Fields), flatten((after ?? {}) as Fields)];
  const names = [...new Set([...old.keys(), ...current.keys()])];
  const changes = names.map((field) => ({ field, before: old.get(field), after: current.get(field) }));
  return [...changes.filter(isDifferent), ...changes.filter((change) => !isDifferent(change))];
}

/** What only one of the two says is no difference if the other says nothing at all. */
export const isDifferent = ({ before, after }: FieldChange): boolean =>
  after !== undefined && JSON.stringify(before) !== JSON.stringify(after);
