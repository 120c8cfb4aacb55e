/** What a 404 says in place of the general text; operations show it in their examples. */
export interface NotFoundText {
  readonly message: string;
  readonly messageRu: string;
}

export const noSuchLinkText = (linkId: number): NotFoundText => ({
  message: `You have no account ${linkId}. GET /v1/web/api-accounts lists those you have.`,
  messageRu: `У вас нет аккаунта ${linkId}. Список ваших аккаунтов: GET /v1/web/api-accounts.`,
});

export const noSuchSessionText = (sessionId: string): NotFoundText => ({
  message: `There is no session ${sessionId}. GET /v1/web/auth/sessions lists those there are.`,
  messageRu: `Сессии ${sessionId} нет. Список сессий: GET /v1/web/auth/sessions.`,
});
