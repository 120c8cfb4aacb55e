/** Tokens that a vendor's chat format adds per message and to start the reply: OpenAI's numbers, rounded up. */
export const tokensPerMessage = 4;
export const replyStartTokens = 3;

/** Tokens that a vendor adds to an input of embeddings, if the catalog does not specify them. */
export const defaultSpecialTokens = 2;
