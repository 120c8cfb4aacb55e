/** The gateway that is attacked, and the API key used for it. */
export interface Target {
  /** URL of the gateway, without a trailing slash. */
  readonly url: string;
  readonly apiKey: string;
}
