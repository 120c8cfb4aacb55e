/** Error text that replaces the general text of its code. Operations show it in their examples. */
export interface ErrorText {
  readonly message: string;
  readonly messageRu: string;
  /** The body field that the error is about. */
  readonly param?: string;
}

export const noSuchLinkText = (linkId: number): ErrorText => ({
  message: `You have no account ${linkId}. GET /v1/web/api-accounts lists your accounts.`,
  messageRu: `У вас нет аккаунта ${linkId}. Список ваших аккаунтов: GET /v1/web/api-accounts.`,
});

export const noSuchSessionText = (sessionId: string): ErrorText => ({
  message: `Session ${sessionId} does not exist. GET /v1/web/auth/sessions lists your sessions.`,
  messageRu: `Сессии ${sessionId} не существует. Список ваших сессий: GET /v1/web/auth/sessions.`,
});

/**
 * Names the field `api_key`, because this 401 is not about the session. A page that refreshed its session in response
 * would only retry the wrong key.
 */
export const unknownKeyText = {
  message: 'No account has this API key. Check the key: it is "mg-" followed by 43 characters.',
  messageRu: 'Аккаунта с таким API-ключом нет. Проверьте ключ: он состоит из «mg-» и 43 символов.',
  param: 'api_key',
} as const satisfies ErrorText;
