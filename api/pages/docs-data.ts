/** What can be found in the documentation: an element of `/docs/search.json`. */
export interface SearchEntry {
  readonly href: string;
  readonly title: string;
  /** Where it stands: the chapter or the guide. */
  readonly place: string;
  /** What else it is found by. */
  readonly text: string;
}

export interface TriedParameter {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly isRequired: boolean;
  readonly example: string;
}

/** An operation that the reference can send, as JSON in the attribute of its button. */
export interface TriedOperation {
  readonly title: string;
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly TriedParameter[];
  /** Bodies to begin with: for a response at once, and for a stream. Empty if the operation takes none. */
  readonly bodies: readonly unknown[];
  readonly needsSession: boolean;
  /** Whether it may be charged. */
  readonly isPaid: boolean;
}
