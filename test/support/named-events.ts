/** An event of a stream whose events have ids and names. */
export interface NamedEvent<T> {
  readonly id: string;
  readonly name: string;
  readonly data: T;
}

/** The events of a stream's text; comments, and what a cut left of an event, are passed over. */
export function parseNamedEvents<T>(text: string): NamedEvent<T>[] {
  return [...text.matchAll(/^id: (.*)\nevent: (.*)\ndata: (.*)\n\n/gm)].map(([, id, name, data]) => ({
    id: id!,
    name: name!,
    data: JSON.parse(data!) as T,
  }));
}
