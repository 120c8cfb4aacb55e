/** An event in a stream whose events have ids and names. */
export interface NamedEvent<T> {
  readonly id: string;
  readonly name: string;
  readonly data: T;
}

/** Parses the events in a stream's text, skipping comments and an incomplete last event. */
export function parseNamedEvents<T>(text: string): NamedEvent<T>[] {
  return [...text.matchAll(/^id: (.*)\nevent: (.*)\ndata: (.*)\n\n/gm)].map(([, id, name, data]) => ({
    id: id!,
    name: name!,
    data: JSON.parse(data!) as T,
  }));
}
