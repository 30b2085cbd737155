// Starts Swagger UI on the document that the page names.
const place = document.getElementById("swagger-ui");
SwaggerUIBundle({ url: place.dataset.document, dom_id: "#swagger-ui", deepLinking: true, validatorUrl: null });
