/** Reads one kind of body chunk by chunk as it arrives. */
export interface BodyReader {
  /** Memory that the parsed part takes in addition to the received bytes. */
  readonly extraBytes: number;
  /**
   * If it returns a promise, nothing more is read until that resolves.
   * @throws AppError if the body is invalid
   */
  push(chunk: Buffer): void | Promise<void>;
  /** @returns the body, for validation */
  end(): unknown;
}
