// decision 0005
/** What a caller may do if its request failed and may have been charged. */
export interface ChargeAdvice {
  readonly en: string;
  readonly ru: string;
}

/** @param hasKey whether the failed request had an Idempotency-Key */
export function adviseOnCharge(requestId: string, hasKey: boolean): ChargeAdvice {
  return hasKey
    ? {
        en:
          'You may have been charged for output that was generated. Send the request again with the same Idempotency-Key: if ' +
          'the response was completed, you receive it without another charge; if it was interrupted, the request runs and is ' +
          `charged again. The x-request-id is ${requestId}.`,
        ru:
          'Плата за сгенерированный результат могла быть списана. Отправьте запрос ещё раз с тем же Idempotency-Key: если ' +
          'ответ был готов полностью, вы получите его без повторного списания; если он прервался, запрос выполнится и будет ' +
          `оплачен заново. x-request-id запроса: ${requestId}.`,
      }
    : {
        en:
          `You may have been charged for output that was generated. Before you send the request again, look up its x-request-id, ${requestId}, in ` +
          'GET /v1/users/request_logs. A request with an Idempotency-Key can be sent again without being charged twice.',
        ru:
          `Плата за сгенерированный результат могла быть списана. Прежде чем отправить запрос ещё раз, найдите его x-request-id, ${requestId}, ` +
          'в GET /v1/users/request_logs. Запрос с Idempotency-Key можно отправить снова без повторного списания.',
      };
}
