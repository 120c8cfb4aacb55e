/** What an attack is aimed at, and the key that it is done with. */
export interface Target {
  /** Of the gateway, without a last slash. */
  readonly url: string;
  readonly apiKey: string;
}
