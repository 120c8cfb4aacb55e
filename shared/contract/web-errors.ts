/** Error text that replaces the general text of its code. Operations show it in their examples. */
export interface ErrorText {
  readonly message: string;
  readonly messageRu: string;
  /** The body field that the error is about. */
  readonly param?: string;
}

export const noSuchLinkText = (linkId: number): ErrorText => ({
  message: `You have no account ${linkId}. GET /v1/web/api-accounts lists those you have.`,
  messageRu: `У вас нет аккаунта ${linkId}. Список ваших аккаунтов: GET /v1/web/api-accounts.`,
});

export const noSuchSessionText = (sessionId: string): ErrorText => ({
  message: `There is no session ${sessionId}. GET /v1/web/auth/sessions lists those there are.`,
  messageRu: `Сессии ${sessionId} нет. Список сессий: GET /v1/web/auth/sessions.`,
});

/**
 * Names the field `api_key`, because this 401 is not about the session. A page that refreshed its session in response
 * would only retry the wrong key.
 */
export const unknownKeyText = {
  message: 'No account has this API key. Check what you pasted: a key is "mg-" and 43 characters.',
  messageRu: 'Аккаунта с таким API-ключом нет. Проверьте, что вы вставили: ключ — это «mg-» и 43 символа.',
  param: 'api_key',
} as const satisfies ErrorText;
