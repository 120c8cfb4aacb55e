/** Reads one kind of body as it arrives, chunk by chunk. */
export interface BodyReader {
  /** What was read so far takes so much memory beside the bytes that came. */
  readonly extraBytes: number;
  /**
   * Where it returns a promise, nothing more is read until that is resolved.
   * @throws AppError what is wrong with the body
   */
  push(chunk: Buffer): void | Promise<void>;
  /** @returns the body, for validation */
  end(): unknown;
}
